#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

/// The least that a test needs: CHECK counts, names what failed and goes on; finish() is what main returns.
namespace mooncake_kv::test {

inline std::atomic<int> checks = 0;
inline std::atomic<int> failures = 0;

inline void report(bool passed, const char* file, int line, const std::string& what) {
  checks++;
  if (passed) return;
  failures++;
  std::fprintf(stderr, "%s:%d: FAILED %s\n", file, line, what.c_str());
}

template <typename A, typename B>
void report_equal(const A& actual, const B& expected, const char* file, int line, const char* text) {
  std::ostringstream what;
  what << text << ": " << actual << ", expected " << expected;
  report(actual == expected, file, line, what.str());
}

template <typename Error, typename Body>
bool throws(Body body) {
  try {
    body();
  } catch (const Error&) {
    return true;
  }
  return false;
}

inline int finish() {
  std::printf("%d checks, %d failed\n", checks.load(), failures.load());
  return failures == 0 && checks > 0 ? 0 : 1;
}

inline std::string hex(const std::uint8_t* bytes, std::size_t size) {
  std::string text;
  char digits[3];
  for (std::size_t i = 0; i < size; i++) {
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    text += digits;
  }
  return text;
}

}  // namespace mooncake_kv::test

#define CHECK(condition) ::mooncake_kv::test::report(static_cast<bool>(condition), __FILE__, __LINE__, #condition)
#define CHECK_EQUAL(actual, expected) \
  ::mooncake_kv::test::report_equal((actual), (expected), __FILE__, __LINE__, #actual)
#define CHECK_THROWS(error, ...) CHECK(::mooncake_kv::test::throws<error>([&] { (void)(__VA_ARGS__); }))
