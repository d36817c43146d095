#include "store/pattern_text.h"

#include <algorithm>
#include <cstddef>

namespace mooncake_kv {
namespace {

/// Digits of a number that surely fits.
constexpr std::size_t most_digits = 9;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Reader {
 public:
  explicit Reader(std::string_view pattern) : rest_(pattern) {}

  std::optional<PatternText> read() {
    int depth = 0;
    seen_.anchored = rest_.starts_with('^');
    while (!rest_.empty()) {
      if (rest_[0] == '\\') {
        escape();
      } else if (rest_[0] == '[') {
        bracket();
      } else if (rest_[0] == '{') {
        take(1);
        number();
        if (rest_.starts_with(',')) {
          take(1);
          number();
        }
      } else {
        if (rest_[0] == '(') seen_.depth = std::max(seen_.depth, ++depth);
        if (rest_[0] == ')' && --depth < 0) seen_.balanced = false;
        if (rest_[0] == '|' && depth == 0) seen_.anchored = false;
        if (rest_.starts_with("(?=") || rest_.starts_with("(?!")) seen_.lookahead = true;
        take(1);
      }
    }
    if (depth != 0) seen_.balanced = false;
    if (!countable_) return std::nullopt;
    return std::move(seen_);
  }

 private:
  void take(std::size_t count) {
    count = std::min(count, rest_.size());
    seen_.text += rest_.substr(0, count);
    rest_.remove_prefix(count);
  }

  void number() {
    std::size_t digits = 0;
    while (digits < rest_.size() && is_digit(rest_[digits])) digits++;
    if (digits > most_digits) countable_ = false;
    take(digits);
  }

  void escape() {
    if (rest_.size() < 2 || !is_digit(rest_[1])) return take(2);
    seen_.back_reference = true;
    seen_.text += "(?:\\b|\\B)";
    take(1);
    number();
  }

  /// [...], in which [:x:], [.x.] and [=x=] and what is escaped don't end it.
  void bracket() {
    take(1);
    while (!rest_.empty() && rest_[0] != ']') {
      const bool named = rest_[0] == '[' && rest_.size() > 1 && std::string_view(":.=").find(rest_[1]) != std::string_view::npos;
      if (named) take(std::min(rest_.find(rest_[1], 2), rest_.size() - 1) + 1);
      else take(rest_[0] == '\\' ? 2 : 1);
      // The bracket that ends a name is no end either.
      if (named && rest_.starts_with(']')) take(1);
    }
    take(1);
  }

  std::string_view rest_;
  PatternText seen_;
  bool countable_ = true;
};

}  // namespace

std::optional<PatternText> read_pattern(std::string_view pattern) { return Reader(pattern).read(); }

}  // namespace mooncake_kv
