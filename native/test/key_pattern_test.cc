#include "store/key_pattern.h"

#include <stdexcept>
#include <string>

#include "check.h"

using namespace mooncake_kv;

static int found(const std::string& pattern, const std::string& key) {
  const auto compiled = KeyPattern::compile(pattern);
  return compiled ? compiled->found_in(key) : -1;
}

static void matches_as_mooncake_does() {
  CHECK_EQUAL(found("^a", "ab"), 1);
  CHECK_EQUAL(found("^a", "ba"), 0);
  CHECK_EQUAL(found("^a", "z\na"), 0);
  CHECK_EQUAL(found("a$", "z\na"), 1);
  CHECK_EQUAL(found("a", "ba"), 1);  // anywhere
  CHECK_EQUAL(found(".*", ""), 1);
  CHECK_EQUAL(found("^$", "a"), 0);
  CHECK_EQUAL(found("k[0-9]+", "k11"), 1);
  CHECK_EQUAL(found("k1|k2", "k2"), 1);
  CHECK_EQUAL(found("\\d+", "K3"), 1);
  CHECK_EQUAL(found("K1", "k1"), 0);
  CHECK_EQUAL(found("k1{2}", "k1"), 0);
  CHECK_EQUAL(found("(?=k)k", "k1"), 1);
  CHECK_EQUAL(found("(a)\\1", "aa"), 1);
  CHECK_EQUAL(found("(a)\\1", "ab"), 0);
  CHECK_EQUAL(found("", "x"), 1);
  for (const char* bad : {"[", "(", "(?i)K1", "*", "a{2", "a{2,1}", "\\", "(?<=a)b"}) CHECK_EQUAL(found(bad, "k"), -1);
}

static void nothing_is_too_long_or_too_deep() {
  const std::string key(1 << 20, 'a');
  CHECK_EQUAL(found(".*", key), 1);
  CHECK_EQUAL(found("(a|b)*c", std::string(5000, 'a')), 0);
  CHECK_EQUAL(found("(a*)*b", std::string(2000, 'a')), 0);  // exponential for a backtracking matcher
  CHECK_EQUAL(found(std::string(100'000, '('), "k"), -1);
  CHECK_EQUAL(found(std::string(1000, '(') + std::string(1000, ')'), "k"), -1);
  CHECK_EQUAL(found(std::string(70'000, 'a'), "k"), -1);
  CHECK_EQUAL(found("((a{1000}){1000}){1000}", "k"), -1);
  CHECK_THROWS(std::length_error, found("(a)\\1", key));
}

int main() {
  matches_as_mooncake_does();
  nothing_is_too_long_or_too_deep();
  return test::finish();
}
