#include "store/key_pattern.h"

#if defined(__unix__)
#include <pthread.h>
#endif

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

using namespace mooncake_kv;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t slower = 10;
constexpr std::size_t small_stack = 8 << 20;
#else
constexpr std::int64_t slower = 1;
constexpr std::size_t small_stack = 2 << 20;
#endif

constexpr int refused = -1;
constexpr int too_ambiguous = -2;
constexpr int too_late = -3;

int found(const std::string& pattern, const std::string& key, const Deadline& deadline = {}) {
  try {
    const auto compiled = KeyPattern::compile(pattern, deadline);
    return compiled ? compiled->found_in(key, deadline) : refused;
  } catch (const KeyPattern::TooAmbiguous&) {
    return too_ambiguous;
  } catch (const KeyPattern::TooLate&) {
    return too_late;
  }
}

std::string repeated(const std::string& text, std::size_t count) {
  std::string all;
  while (count-- > 0) all += text;
  return all;
}

template <typename Body>
std::int64_t milliseconds(Body body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
}

/// Runs a function on a stack of `small_stack` bytes: a quarter of what threads of libuv have.
void on_a_small_stack(void (*body)()) {
#if defined(__unix__)
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, small_stack);
  pthread_t thread;
  const auto run = [](void* given) -> void* {
    reinterpret_cast<void (*)()>(given)();
    return nullptr;
  };
  CHECK_EQUAL(pthread_create(&thread, &attributes, run, reinterpret_cast<void*>(body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
#else
  body();
#endif
}

void matches_as_mooncake_does() {
  CHECK_EQUAL(found("^a", "ab"), 1);
  CHECK_EQUAL(found("^a", "ba"), 0);
  CHECK_EQUAL(found("^a", "z\na"), 0);
  CHECK_EQUAL(found("a$", "z\na"), 1);
  CHECK_EQUAL(found("a", "ba"), 1);  // anywhere
  CHECK_EQUAL(found("a", "\n\r\xe2\x80\xa8" "a"), 1);
  CHECK_EQUAL(found("a|^b", "xb"), 0);
  CHECK_EQUAL(found("^a|b", "xb"), 1);
  CHECK_EQUAL(found("^(a|b)", "xb"), 0);
  CHECK_EQUAL(found("^*", "x"), refused);
  CHECK_EQUAL(found(".*", ""), 1);
  CHECK_EQUAL(found("^$", "a"), 0);
  CHECK_EQUAL(found("k[0-9]+", "k11"), 1);
  CHECK_EQUAL(found("k1|k2", "k2"), 1);
  CHECK_EQUAL(found("\\d+", "K3"), 1);
  CHECK_EQUAL(found("K1", "k1"), 0);
  CHECK_EQUAL(found("k1{2}", "k1"), 0);
  CHECK_EQUAL(found("(?=k)k", "k1"), 1);
  CHECK_EQUAL(found("(?=\\bk)k", "ak"), 0);
  CHECK_EQUAL(found("\\bk", "a k"), 1);
  CHECK_EQUAL(found("(a)\\1", "aa"), 1);
  CHECK_EQUAL(found("(a)\\1", "ab"), 0);
  CHECK_EQUAL(found("(a|b)x\\1", "ax bxb"), 1);
  CHECK_EQUAL(found("(a)?\\1b", "b"), 0);  // a group without a match matches nothing
  CHECK_EQUAL(found("[[:digit:][.hyphen.]]\\]", "-]"), 1);
  CHECK_EQUAL(found("[[=a=]]", "A"), 1);
  CHECK_EQUAL(found("[\\]]x", "]x"), 1);
  CHECK_EQUAL(found("[\xc3-\xc5]", "\xc4"), 1);
  CHECK_EQUAL(found("\\(\\)\\\\1", "()\\1"), 1);
  CHECK_EQUAL(found(std::string("a\0b", 3), std::string("xa\0b", 4)), 1);
  CHECK_EQUAL(found("", "x"), 1);
  for (const char* bad : {"[", "(", "(?i)K1", "*", "a{2", "a{2,1}", "\\", "(?<=a)b", ")", "a)(b", "a)|(b", "\\1", "(a)[\\1]"})
    CHECK_EQUAL(found(bad, "k"), refused);
}

/// Whatever is written differently for our sake must find what std::regex finds.
void finds_what_std_regex_finds() {
  const std::vector<std::string> parts = {"a",   "b",   ".",     "^",     "$",      "\\b",  "\\B", "[ab]", "[^a]", "\\w", "(a|b)",
                                          "(a)", "\\1", "(?:b)", "(?=a)", "(?!b)", "(ab?)", "|",   "(",    ")",    "()",
                                          "\\(", "\\)", "[(]", "[)\\]]", "[[:alpha:])]", "[]", "[^]", "\\\\"};
  const std::vector<std::string> quantifiers = {"", "", "", "*", "+?", "?", "{2}", "{1,2}", "{0,2}?"};
  std::mt19937 random(7);
  const auto any = [&](const auto& list) { return list[random() % list.size()]; };
  for (int round = 0; round < 5000; round++) {
    std::string pattern;
    for (std::size_t n = 1 + random() % 5; n > 0; n--) pattern += any(parts) + any(quantifiers);
    int expected = refused;
    std::string key;
    for (std::size_t n = random() % 7; n > 0; n--) key += "aabb \n"[random() % 6];
    try {
      expected = std::regex_search(key, std::regex(pattern));
    } catch (const std::regex_error&) {
    }
    const int actual = found(pattern, key);
    if (actual != expected) std::fprintf(stderr, "\"%s\" in \"%s\"\n", pattern.c_str(), key.c_str());
    CHECK_EQUAL(actual, expected);
  }
}

void nothing_is_too_long_or_too_deep() {
  CHECK_EQUAL(found(".*", std::string(1 << 18, 'a')), 1);
  CHECK_EQUAL(found("(a|b)*c", std::string(100'000, 'a')), 0);  // once through the key, not once a byte
  CHECK_EQUAL(found("(a*)*b", std::string(2000, 'a')), 0);      // exponential for a backtracking matcher
  CHECK_EQUAL(found("(a)\\1", std::string(1 << 20, 'a')), 1);
  if (slower == 1) CHECK_EQUAL(found(std::string(KeyPattern::longest, 'a'), "k"), 0);  // else the stack's frames are too large
  CHECK_EQUAL(found(std::string(KeyPattern::longest + 1, 'a'), "k"), refused);
  const auto nested = [](int depth) { return repeated("(", depth) + "a" + repeated(")*", depth); };
  CHECK_EQUAL(found(nested(KeyPattern::deepest), "ka"), 1);
  CHECK_EQUAL(found(nested(KeyPattern::deepest + 1), "k"), refused);
  CHECK_EQUAL(found(std::string(4000, '('), "k"), refused);
  CHECK_EQUAL(found(repeated("\\(", 110) + "[" + std::string(110, '(') + "]", "k"), 0);  // those are no brackets
  // Everything that is written out n times.
  CHECK_EQUAL(found("k[0-9a-f]{64}", "k" + std::string(64, 'f')), 1);
  CHECK_EQUAL(found("^(?![^]{4097})[^]*?k[^]*1$", "ak11"), 1);
  CHECK_EQUAL(found("^(?![^]{4097})[^]*?k[^]*1$", std::string(4094, 'a') + "k11"), 0);
  for (const char* bomb : {"a{1,100000}", "a{100000}", "((a{1000}){1000}){1000}", "(((a{1,100}){1,100}){1,100})", "a{300}{300}{300}",
                           "(?:){999999999}", "a{12345678901234567890}", "a{1,12345678901234567890}", "(a)\\12345678901234567890",
                           "(?=a{6000})"})
    CHECK_EQUAL(found(bomb, "k"), refused);
}

/// The worst that fits.
void worst_patterns_end_in_time() {
  const std::string key(4096, 'a');
  const std::vector<std::string> patterns = {
      repeated("a?", 1650), repeated("a*", 2000) + "b", repeated("a|", 1240) + "b", repeated("|", 1600), repeated("[a]", 1365),
      repeated("\\w", 2048), repeated("()", 2048), "(?:){2450}", "(?:a?){950}b", "(?:|){950}b", "[" + repeated("[=a=]", 800) + "]b",
      "[" + repeated("a-z", 1300) + "]b", repeated("(", 100) + repeated("a?", 1590) + repeated(")", 100) + "*b",
      repeated("(?=.*", 50) + "x" + repeated(")", 50), "(?:(?=)){150}b", "(?:(?=)){700}b", "(?![^]{4097})[^]*?b", "(?:(?=a*)){400}b", "(a*)*\\1b", "(a*)b\\1", "(x)?" + repeated("a?", 1600) + "\\1b",
      "(x){0}(?:|){40}\\1", "(" + repeated("(", 99) + repeated("a|", 500) + "a" + repeated(")", 99) + ")*\\1b", "(.*)*(.*)*\\2\\1x",
      repeated("(a)", 300) + repeated("\\1", 300) + "b"};
  for (const std::string& pattern : patterns) {
    int result = 0;
    const std::int64_t took = milliseconds([&] { result = found(pattern, key, Deadline::after_ms(100)); });
    const bool in_time = took < 100 + 150 * slower;
    if (!in_time) std::fprintf(stderr, "%s: %lld ms, %d\n", pattern.substr(0, 40).c_str(), static_cast<long long>(took), result);
    CHECK(in_time);
    if (result == refused && slower == 1) std::fprintf(stderr, "%s: refused\n", pattern.substr(0, 40).c_str());
    CHECK(result != refused || slower > 1);
  }
}

void without_a_deadline_steps_are_counted() {
  const std::size_t length = slower == 1 ? 500 : 50;
  CHECK_EQUAL(found("(a*)*\\1b", std::string(30, 'a')), too_ambiguous);
  CHECK_EQUAL(found("(x){0}(?:|){60}\\1", "a"), too_ambiguous);
  CHECK_EQUAL(found("(?=.*(?=.*(?=.*x)))y", std::string(1000, 'a')), too_ambiguous);
  CHECK_EQUAL(found("(.*)-\\1", std::string(length, 'a') + "-b"), 1);  // the empty one
  CHECK_EQUAL(found("^(.+)-\\1$", std::string(length, 'a') + "-b"), 0);
  CHECK_EQUAL(found("^(?!keep-)", "keep-1"), 0);
  CHECK_EQUAL(found("(?=.*z)a", std::string(500, 'a')), 0);
}

void a_cancelled_search_ends() {
  const auto flag = std::make_shared<std::atomic<bool>>(false);
  const Deadline deadline = Deadline().or_when(flag);
  CHECK(!deadline.never() && !deadline.over());
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *flag = true;
  });
  CHECK_EQUAL(found("a", "a", Deadline::after_ms(0)), too_late);
  CHECK_EQUAL(found(repeated("a*", slower == 1 ? 2000 : 100) + "b", std::string(1 << 20, 'a'), deadline), too_late);
  other.join();
  CHECK(deadline.over());
}

}  // namespace

int main() {
  matches_as_mooncake_does();
  finds_what_std_regex_finds();
  nothing_is_too_long_or_too_deep();
  on_a_small_stack(worst_patterns_end_in_time);
  without_a_deadline_steps_are_counted();
  a_cancelled_search_ends();
  return test::finish();
}
