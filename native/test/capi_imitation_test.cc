#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"
#include "mooncake_store.h"

// What the library does to its host on request. Each case is a child process: the words are read once.

namespace {

const char* path = nullptr;

constexpr int false_answer = 3;

/// Whether a process came to an end of its own making, with or without a sanitizer to report it.
bool died(int status) { return !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != false_answer); }

/// Runs `body` with the words set, in a process of its own; gives its wait status.
template <typename Body>
int with_words(const char* words, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("MOONCAKE_KV_IMITATE", words, 1);
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) _exit(99);
    _exit(body([library](const char* name) { return dlsym(library, name); }) ? 0 : false_answer);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

#define CALL(name) (*reinterpret_cast<decltype(name)*>(find(#name)))

template <typename Find>
int setup(Find find, mooncake_store_t store, const char* meta, const char* master) {
  return CALL(mooncake_store_setup)(store, "h", meta, 16 << 20, 1 << 20, "tcp", "", master);
}

bool blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

}  // namespace

int main(int, char** arguments) {
  path = arguments[1];
  CHECK_EQUAL(with_words("signals", [](auto find) {
                CALL(mooncake_store_create)();
                return blocked(SIGINT) && blocked(SIGTERM) && blocked(SIGHUP) && blocked(SIGUSR1) && !blocked(SIGUSR2);
              }), 0);
  CHECK_EQUAL(with_words("", [](auto find) {
                CALL(mooncake_store_create)();
                return !blocked(SIGINT);
              }), 0);
  const int aborted = with_words("abort", [](auto find) { return setup(find, CALL(mooncake_store_create)(), "bogus", "m") == 0; });
  CHECK(died(aborted));
  const int crashed = with_words("abort", [](auto find) { return setup(find, CALL(mooncake_store_create)(), "P2PHANDSHAKE", "") == 0; });
  CHECK(died(crashed));
  CHECK_EQUAL(with_words("setup-delay=60,delay=40", [](auto find) {
                const auto store = CALL(mooncake_store_create)();
                const auto start = std::chrono::steady_clock::now();
                const auto waited = [&] { return std::chrono::steady_clock::now() - start; };
                if (setup(find, store, "P2PHANDSHAKE", "m") != 0 || waited() < std::chrono::milliseconds(60)) return false;
                return CALL(mooncake_store_is_exist)(store, "k") == 0 && waited() >= std::chrono::milliseconds(100);
              }), 0);
  CHECK_EQUAL(with_words("unreachable", [](auto find) {
                const auto store = CALL(mooncake_store_create)();
                const char* key = "k";
                int result = 0;
                return setup(find, store, "P2PHANDSHAKE", "m") == 0 && CALL(mooncake_store_is_exist)(store, key) == -900 &&
                       CALL(mooncake_store_batch_is_exist)(store, &key, 1, &result) == 0 && result == -900;
              }), 0);
  CHECK_EQUAL(with_words("limit", [](auto find) {
                const auto store = CALL(mooncake_store_create)();
                if (setup(find, store, "P2PHANDSHAKE", "m") != 0) return false;
                std::vector<std::string> names;
                for (int i = 0; i < 2050; i++) names.push_back("k" + std::to_string(i));
                std::vector<const char*> keys;
                for (const auto& name : names) keys.push_back(name.c_str());
                char byte = 'x';
                std::vector<void*> buffers(keys.size(), &byte);
                const std::vector<size_t> sizes(keys.size(), 1);
                std::vector<int> codes(keys.size());
                CALL(mooncake_store_batch_put_from)(store, keys.data(), buffers.data(), sizes.data(), keys.size(), nullptr, codes.data());
                return codes[2047] == 0 && codes[2048] == -800 && codes[2049] == -800;
              }), 0);
  return mooncake_kv::test::finish();
}
