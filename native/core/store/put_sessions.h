#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "store/object_table.h"

namespace mooncake_kv {

/// Puts that clients have started and not ended yet, by client and key. Thread-safe.
class PutSessions {
 public:
  bool has(std::uint64_t client, std::string_view key) const;
  /// Nothing happens when there is one already.
  void open(std::uint64_t client, std::string_view key, Writing writing);
  /// A copy of what the session writes; an empty one without a session.
  Writing find(std::uint64_t client, std::string_view key) const;
  /// The same, and the session is over.
  Writing close(std::uint64_t client, std::string_view key);
  void clear();

 private:
  using Id = std::pair<std::uint64_t, std::string>;

  mutable std::mutex mutex_;
  std::map<Id, Writing> open_;
};

}  // namespace mooncake_kv
