#include "store/key_pattern.h"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "store/pattern_text.h"

namespace mooncake_kv {
namespace {

/// Compiling recurses once a part of the pattern, backtracking once a step. Any stack has this much left.
constexpr std::uintptr_t most_stack = 1 << 20;

/// How far the stack has grown since it was made.
class StackMark {
 public:
  bool too_far() const {
    const std::uintptr_t here = position();
    return (here < start_ ? start_ - here : here - start_) > most_stack;
  }

 private:
  static std::uintptr_t position() {
#if defined(__GNUC__)
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
#else
    volatile char here = 0;
    return reinterpret_cast<std::uintptr_t>(&here);
#endif
  }

  const std::uintptr_t start_ = position();
};

/// What the pattern may cost that this thread compiles.
struct Compiling {
  const std::size_t states;
  const Deadline& deadline;
  const StackMark stack;
};
thread_local const Compiling* compiling = nullptr;

/// One at a time: facets of the locale, which all share, fill tables of libstdc++ while a pattern is read.
std::mutex compile_mutex;

[[maybe_unused]] std::size_t states_allowed() {
  if (compiling->stack.too_far()) return 0;
  if (compiling->deadline.over()) throw KeyPattern::TooLate();
  return compiling->states;
}

}  // namespace
}  // namespace mooncake_kv

// libstdc++ asks this whenever it has added a state. The traits below keep its templates apart from those of other users.
#define _GLIBCXX_REGEX_STATE_LIMIT (::mooncake_kv::states_allowed())
#include <regex>

namespace mooncake_kv {
namespace {

/// Those of std::regex in the classic locale, but what they do to text costs less and the same everywhere.
struct Traits : std::regex_traits<char> {
  template <typename Iterator>
  std::string transform(Iterator first, Iterator last) const {
    std::string text;
    for (; first != last; ++first) text += *first;
    return text;
  }
  template <typename Iterator>
  std::string transform_primary(Iterator first, Iterator last) const {
    std::string text = transform(first, last);
    for (char& c : text) c = translate_nocase(c);
    return text;
  }
  template <typename Iterator>
  char_class_type lookup_classname(Iterator first, Iterator last, bool icase = false) const {
    // libstdc++ asks for this one at every word boundary.
    if (last - first == 1 && *first == 'w' && !icase) return word_;
    return std::regex_traits<char>::lookup_classname(first, last, icase);
  }

 private:
  static char_class_type word() {
    const char name = 'w';
    return std::regex_traits<char>().lookup_classname(&name, &name + 1);
  }

  char_class_type word_ = word();
};

using Regex = std::basic_regex<char, Traits>;

/// Steps that any pattern has for any key: what is quadratic in a key of a thousand bytes is fine.
constexpr std::uint64_t free_steps = 1 << 20;

/// Counts the steps of std::regex through one key, and ends it by an exception.
class Meter {
 public:
  Meter(const Deadline& deadline, std::uint64_t budget)
      : deadline_(deadline), budget_(budget), looked_(Clock::now()) {}

  void step() {
    if (++steps_ >= next_look_) look();
    if (stack_.too_far()) throw KeyPattern::TooAmbiguous();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void look() {
    if (steps_ > budget_) throw KeyPattern::TooAmbiguous();
    if (deadline_.over()) throw KeyPattern::TooLate();
    // What lies between two steps takes nanoseconds or a millisecond, depending on the pattern.
    const Clock::time_point now = Clock::now();
    if (now - looked_ < std::chrono::microseconds(100)) pause_ = pause_ < 2048 ? pause_ * 2 : pause_;
    else if (now - looked_ > std::chrono::milliseconds(1)) pause_ = pause_ > 4 ? pause_ / 4 : 1;
    looked_ = now;
    next_look_ = steps_ + pause_;
  }

  const Deadline& deadline_;
  const std::uint64_t budget_;
  const StackMark stack_;
  std::uint64_t steps_ = 0;
  std::uint64_t next_look_ = 16;
  std::uint64_t pause_ = 16;
  Clock::time_point looked_;
};

/// A place in a key. std::regex can't do a step without reading a byte or comparing two places.
class Place {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Place() = default;
  Place(const char* at, Meter* meter) : at_(at), meter_(meter) {}

  reference operator*() const {
    meter_->step();
    return *at_;
  }
  pointer operator->() const { return at_; }
  Place& operator++() {
    ++at_;
    return *this;
  }
  Place operator++(int) {
    Place before = *this;
    ++at_;
    return before;
  }
  Place& operator--() {
    --at_;
    return *this;
  }
  Place operator--(int) {
    Place before = *this;
    --at_;
    return before;
  }
  bool operator==(const Place& other) const {
    if (meter_) meter_->step();
    return at_ == other.at_;
  }

 private:
  const char* at_ = nullptr;
  Meter* meter_ = nullptr;
};

std::optional<Regex> compiled(const std::string& text, std::regex_constants::syntax_option_type flags, const Compiling& limits) {
  const std::lock_guard lock(compile_mutex);
  compiling = &limits;
  try {
    return Regex(text, std::regex_constants::ECMAScript | flags);
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

}  // namespace

struct KeyPattern::Compiled {
  Regex regex;
  /// Whether the steps for a key are bounded by themselves.
  bool bounded;
  /// Whether the regex stands for all places where a match may begin, and so need not be tried at every byte.
  bool whole;
  std::size_t size;
};

std::optional<KeyPattern> KeyPattern::compile(std::string_view pattern, const Deadline& deadline) {
  if (pattern.size() > longest) return std::nullopt;
  const auto read = read_pattern(pattern);
  if (!read || !read->balanced || read->depth > deepest) return std::nullopt;
  const Compiling limits{most_states, deadline, {}};
  const auto pattern_of = [&](std::optional<Regex> regex, bool bounded, bool whole) -> std::optional<KeyPattern> {
    if (!regex) return std::nullopt;
    return KeyPattern(std::make_shared<Compiled>(Compiled{std::move(*regex), bounded, whole, pattern.size()}));
  };
#if defined(__GLIBCXX__)
  if (!read->back_reference) {
    // Breadth first: every state once a byte. Only back-references are beyond it.
    const auto flags = std::regex_constants::nosubs | std::regex_constants::__polynomial;
    // A lookahead has its own idea of where a key begins, which what comes before the match must not change.
    if (read->lookahead) return pattern_of(compiled(read->text, flags, limits), false, false);
    const std::string before = read->anchored ? "" : "[^]*?";
    return pattern_of(compiled(before + "(?:" + read->text + ")", flags, limits), true, true);
  }
#endif
  return pattern_of(compiled(read->text, {}, limits), false, false);
}

bool KeyPattern::found_in(std::string_view key, const Deadline& deadline) const {
  const std::uint64_t product = (std::uint64_t{compiled_->size} + 1) * (std::uint64_t{key.size()} + 1);
  Meter meter(deadline, compiled_->bounded ? UINT64_MAX : std::max(free_steps, 64 * product));
  const auto flags = compiled_->whole ? std::regex_constants::match_continuous : std::regex_constants::match_default;
  const Place first(key.data(), &meter);
  const Place last(key.data() + key.size(), &meter);
  try {
    return std::regex_search(first, last, compiled_->regex, flags);
  } catch (const std::regex_error&) {
    throw TooAmbiguous();  // other libraries have limits of their own
  }
}

}  // namespace mooncake_kv
