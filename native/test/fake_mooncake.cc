// A library with the C interface of Mooncake that does to its host what the real one was seen to do, and is stricter: it
// ends the process for every call that the addon should have refused. Tests build it with the C++ compiler alone.
//
// The master's address says how it behaves:
//   refuse:CODE      setup gives CODE
//   hang:MS          setup takes MS milliseconds
//   anything else    setup gives 0
// So do keys: one that starts with "hang:MS:" holds its call up, one that starts with "code:CODE:" gives CODE.
// The host name is what the tests want to know: the numbers of creates and destroys, and whether the thread blocks SIGINT.
// With MOONCAKE_FAKE_EXIT_MS in the environment, exit takes so long while a client is not destroyed.

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "../capi/mooncake_store.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<int> creates{0};
std::atomic<int> destroys{0};

struct Fake {
  std::mutex mutex;
  std::map<std::string, std::string> objects;
  std::map<char*, std::size_t> buffers;
};

void fail(const char* why) {
  std::fprintf(stderr, "fake Mooncake: %s\n", why);
  abort();
}

void check(bool condition, const char* why) {
  if (!condition) fail(why);
}

Fake& fake(mooncake_store_t store) {
  check(store != nullptr, "a null store");
  return *static_cast<Fake*>(store);
}

/// What the key asks for; the code, or 1 for none.
int obey(const std::string& key) {
  if (key.starts_with("hang:")) std::this_thread::sleep_for(std::chrono::milliseconds(atoi(key.c_str() + 5)));
  return key.starts_with("code:") ? atoi(key.c_str() + 5) : 1;
}

void check_key(const char* key) { check(key != nullptr && *key != '\0', "an empty key"); }

/// Calls on memory must use what was registered.
void check_memory(Fake& fake, void* memory, std::size_t size) {
  const std::lock_guard lock(fake.mutex);
  for (const auto& [first, bytes] : fake.buffers)
    if (memory >= first && static_cast<char*>(memory) + size <= first + bytes) return;
  fail("memory that was not registered");
}

void check_batch(Fake& fake, const char** keys, void** buffers, const std::size_t* sizes, std::size_t count) {
  std::set<std::string> seen;
  std::size_t transfers = 0;
  for (std::size_t i = 0; i < count; i++) {
    check_key(keys[i]);
    check(seen.insert(keys[i]).second, "a key twice in one batch");
    if (buffers == nullptr) continue;
    check_memory(fake, buffers[i], sizes[i]);
    transfers += sizes[i] / (16 * 1024 * 1024 - 16) + 1;
  }
  check(transfers <= 1024, "more transfers than may be queued");
}

void wait_for_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set] {
    int number = 0;
    sigwait(&set, &number);
    _exit(99);
  }).detach();
}

void at_exit() {
  const char* wait = getenv("MOONCAKE_FAKE_EXIT_MS");
  if (wait && creates.load() != destroys.load()) std::this_thread::sleep_for(std::chrono::milliseconds(atoi(wait)));
}

}  // namespace

EXPORT mooncake_store_t mooncake_store_create() {
  static std::once_flag once;
  std::call_once(once, [] {
    wait_for_signals();
    atexit(at_exit);
  });
  creates++;
  return new Fake;
}

EXPORT void mooncake_store_destroy(mooncake_store_t store) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  destroys++;
  delete static_cast<Fake*>(store);
}

EXPORT int mooncake_store_setup(mooncake_store_t store, const char* host, const char* metadata, uint64_t, uint64_t, const char*,
                                const char*, const char* master) {
  fake(store);
  check(*host != '\0', "an empty host name");
  if (*master == '\0') raise(SIGSEGV);
  check(!strcmp(metadata, "P2PHANDSHAKE") || !strncmp(metadata, "http://", 7), "an unknown metadata server");
  const std::string address = master;
  if (address.starts_with("hang:")) std::this_thread::sleep_for(std::chrono::milliseconds(atoi(master + 5)));
  return address.starts_with("refuse:") ? -atoi(master + 7) : 0;
}

EXPORT int mooncake_store_health_check(mooncake_store_t store) {
  fake(store);
  return 0;
}

EXPORT int mooncake_store_batch_put_from(mooncake_store_t store, const char** keys, void** buffers, const size_t* sizes,
                                         size_t count, const mooncake_replicate_config_t* config, int* results) {
  Fake& client = fake(store);
  check(config != nullptr, "no configuration");
  check_batch(client, keys, buffers, sizes, count);
  for (size_t i = 0; i < count; i++) {
    check(sizes[i] > 0, "a put of nothing");
    const int code = obey(keys[i]);
    if (code == 1) {
      const std::lock_guard lock(client.mutex);
      client.objects.try_emplace(keys[i], static_cast<char*>(buffers[i]), sizes[i]);
    }
    results[i] = code == 1 ? 0 : code;
  }
  return 0;
}

EXPORT int mooncake_store_batch_get_into(mooncake_store_t store, const char** keys, void** buffers, const size_t* sizes,
                                         size_t count, int64_t* results) {
  Fake& client = fake(store);
  check_batch(client, keys, buffers, sizes, count);
  for (size_t i = 0; i < count; i++) {
    const int code = obey(keys[i]);
    const std::lock_guard lock(client.mutex);
    const auto found = client.objects.find(keys[i]);
    if (code != 1) results[i] = code;
    else if (found == client.objects.end()) results[i] = -704;
    else if (found->second.size() > sizes[i]) results[i] = -600;
    else {
      memcpy(buffers[i], found->second.data(), found->second.size());
      results[i] = static_cast<int64_t>(found->second.size());
    }
  }
  return 0;
}

EXPORT int mooncake_store_is_exist(mooncake_store_t store, const char* key) {
  Fake& client = fake(store);
  check_key(key);
  const int code = obey(key);
  const std::lock_guard lock(client.mutex);
  return code != 1 ? code : client.objects.contains(key);
}

EXPORT int mooncake_store_batch_is_exist(mooncake_store_t store, const char** keys, size_t count, int* results) {
  for (size_t i = 0; i < count; i++) results[i] = mooncake_store_is_exist(store, keys[i]);
  return 0;
}

EXPORT int64_t mooncake_store_get_size(mooncake_store_t store, const char* key) {
  Fake& client = fake(store);
  check_key(key);
  const int code = obey(key);
  const std::lock_guard lock(client.mutex);
  const auto found = client.objects.find(key);
  return code != 1 ? code : found == client.objects.end() ? -704 : static_cast<int64_t>(found->second.size());
}

EXPORT int mooncake_store_get_hostname(mooncake_store_t store, char* out, size_t size) {
  fake(store);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return snprintf(out, size, "creates=%d destroys=%d blocked=%d", creates.load(), destroys.load(), sigismember(&mask, SIGINT));
}

#ifndef MOONCAKE_FAKE_LACKS

EXPORT int mooncake_store_remove(mooncake_store_t store, const char* key, int force) {
  Fake& client = fake(store);
  check_key(key);
  const int code = obey(key);
  if (code != 1 && !force) return code;
  const std::lock_guard lock(client.mutex);
  return client.objects.erase(key) ? 0 : -704;
}

EXPORT int64_t mooncake_store_remove_by_regex(mooncake_store_t store, const char* pattern, int) {
  Fake& client = fake(store);
  const std::lock_guard lock(client.mutex);
  return static_cast<int64_t>(std::erase_if(client.objects, [&](const auto& object) { return object.first.find(pattern) != std::string::npos; }));
}

EXPORT int64_t mooncake_store_remove_all(mooncake_store_t store, int) {
  Fake& client = fake(store);
  const std::lock_guard lock(client.mutex);
  const auto count = static_cast<int64_t>(client.objects.size());
  client.objects.clear();
  return count;
}

EXPORT int mooncake_store_register_buffer(mooncake_store_t store, void* buffer, size_t size) {
  Fake& client = fake(store);
  const std::lock_guard lock(client.mutex);
  if (buffer == nullptr || size == 0) return -600;
  client.buffers[static_cast<char*>(buffer)] = size;
  return 0;
}

EXPORT int mooncake_store_unregister_buffer(mooncake_store_t store, void* buffer) {
  Fake& client = fake(store);
  const std::lock_guard lock(client.mutex);
  return client.buffers.erase(static_cast<char*>(buffer)) ? 0 : -600;
}

#endif
