#include "store/key_pattern.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace mooncake_kv {
namespace {

// The parser recurses once a bracket, so the depth of a pattern is limited.
constexpr std::size_t longest_pattern = 64 << 10;
constexpr int deepest_pattern = 200;
/// Matching with back-references recurses once a byte.
constexpr std::size_t longest_backtracked = 4096;

bool too_deep(std::string_view pattern) {
  int depth = 0;
  int deepest = 0;
  for (const char c : pattern) {
    if (c == '(') deepest = std::max(deepest, ++depth);
    if (c == ')') depth--;
  }
  return deepest > deepest_pattern;
}

}  // namespace

std::optional<KeyPattern> KeyPattern::compile(std::string_view pattern) {
  if (pattern.size() > longest_pattern || too_deep(pattern)) return std::nullopt;
  const std::string text(pattern);
  try {
    std::regex backtracking(text, std::regex::ECMAScript);
#if defined(__GLIBCXX__)
    try {
      // The same language, matched breadth first; only back-references are beyond it.
      return KeyPattern(std::regex(text, std::regex::ECMAScript | std::regex_constants::__polynomial), false);
    } catch (const std::regex_error&) {
    }
#endif
    return KeyPattern(std::move(backtracking), true);
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

bool KeyPattern::found_in(std::string_view key) const {
  if (backtracks_ && key.size() > longest_backtracked)
    throw std::length_error("a pattern with a back-reference does not match keys of more than 4,096 bytes");
  return std::regex_search(key.begin(), key.end(), regex_);
}

}  // namespace mooncake_kv
