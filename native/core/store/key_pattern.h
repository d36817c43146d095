#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "deadline.h"

namespace mooncake_kv {

/// A pattern that selects keys: an ECMAScript regular expression as std::regex reads it, searched for anywhere in the
/// key. Unlike std::regex, no pattern and no key can exhaust the stack or take exponential time: the time for a key is
/// bounded by the size of the pattern times that of the key, and by a deadline, which also comes in the middle of a key.
class KeyPattern {
 public:
  /// Larger patterns are refused: compiling recurses once a character, and matching once a state.
  static constexpr std::size_t longest = 4096;
  static constexpr int deepest = 100;
  /// States of the automaton: each character is one or two, and a{100} is a hundred times a.
  static constexpr std::size_t most_states = 5'000;

  /// Thrown when the deadline came first.
  struct TooLate : std::exception {
    const char* what() const noexcept override { return "the deadline came before it was known what matches"; }
  };
  /// Thrown when a pattern with a back-reference or a lookahead takes too many steps for a key, or too much stack.
  struct TooAmbiguous : std::exception {
    const char* what() const noexcept override { return "the pattern is too ambiguous for a key"; }
  };

  /// Nothing for a pattern that std::regex refuses, or that is too large. Throws TooLate and std::bad_alloc.
  static std::optional<KeyPattern> compile(std::string_view pattern, const Deadline& deadline = {});

  /// Throws TooLate, TooAmbiguous and std::bad_alloc.
  bool found_in(std::string_view key, const Deadline& deadline = {}) const;

 private:
  struct Compiled;
  explicit KeyPattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace mooncake_kv
