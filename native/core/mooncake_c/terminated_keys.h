#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "store/batch.h"

namespace mooncake_kv::mooncake_c {

/// The keys of a call as the C interface takes them: each ends with NUL.
class TerminatedKeys {
 public:
  explicit TerminatedKeys(const KeyBatch& keys) {
    offsets_.reserve(keys.count + 1);
    for (std::size_t i = 0; i < keys.count; i++) {
      offsets_.push_back(text_.size());
      text_.append(keys[i]);
      text_.push_back('\0');
    }
    offsets_.push_back(text_.size());
  }

  std::size_t count() const { return offsets_.size() - 1; }
  const char* operator[](std::size_t i) const { return text_.data() + offsets_[i]; }
  std::string_view view(std::size_t i) const { return {text_.data() + offsets_[i], offsets_[i + 1] - offsets_[i] - 1}; }

  bool empty(std::size_t i) const { return view(i).empty(); }
  /// A key with a NUL inside would be taken for a shorter one.
  bool cut_off(std::size_t i) const { return view(i).find('\0') != std::string_view::npos; }

 private:
  std::string text_;
  std::vector<std::size_t> offsets_;
};

}  // namespace mooncake_kv::mooncake_c
