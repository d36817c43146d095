#pragma once

#include <optional>
#include <regex>
#include <string_view>

namespace mooncake_kv {

/// A pattern that selects keys: an ECMAScript regular expression as std::regex reads it, searched for anywhere in the
/// key. Unlike std::regex, no pattern and no key can exhaust the stack or take exponential time.
class KeyPattern {
 public:
  /// Nothing for a pattern that std::regex refuses, or that is absurdly long or deep.
  static std::optional<KeyPattern> compile(std::string_view pattern);

  /// Throws std::length_error when the pattern has a back-reference and the key more than 4,096 bytes.
  bool found_in(std::string_view key) const;

 private:
  KeyPattern(std::regex regex, bool backtracks) : regex_(std::move(regex)), backtracks_(backtracks) {}

  std::regex regex_;
  bool backtracks_;
};

}  // namespace mooncake_kv
