#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mooncake_kv {

/// What the text of a regular expression says about the cost of compiling and matching it.
struct PatternText {
  /// The pattern with every back-reference behind a group that matches nothing, and always: std::regex goes back from a
  /// reference to a group without a match before it looks at the key, so that nothing would count its steps.
  std::string text;
  /// How deep its brackets are.
  int depth = 0;
  /// Whether every bracket has its other half: else std::regex refuses the pattern.
  bool balanced = true;
  /// Whether it can match at the start of a key only.
  bool anchored = false;
  bool lookahead = false;
  bool back_reference = false;
};

/// Reads a pattern as std::regex does; one that std::regex refuses gives anything. Nothing for a pattern with a number so
/// large that std::regex would not count it right.
std::optional<PatternText> read_pattern(std::string_view pattern);

}  // namespace mooncake_kv
