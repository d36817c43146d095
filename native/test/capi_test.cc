#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "mooncake_store.h"

// Loads the library as a host does that knows nothing of it but its name.

namespace {

void* library = nullptr;

template <typename Function>
Function* symbol(const char* name) {
  void* found = dlsym(library, name);
  CHECK(found != nullptr);
  return reinterpret_cast<Function*>(found);
}
#define CALL(name) (*symbol<decltype(name)>(#name))

constexpr std::uint64_t mib = 1 << 20;

struct Store {
  explicit Store(std::uint64_t segment, const char* master = "127.0.0.1:50051", std::uint64_t local = 16 * mib)
      : handle(CALL(mooncake_store_create)()) {
    CHECK_EQUAL(CALL(mooncake_store_setup)(handle, "127.0.0.1", "P2PHANDSHAKE", segment, local, "tcp", "", master), 0);
  }
  ~Store() { CALL(mooncake_store_destroy)(handle); }
  int put(const char* key, std::string value) { return CALL(mooncake_store_put_from)(handle, key, value.data(), value.size(), nullptr); }
  std::string get(const char* key, std::size_t size) {
    std::string value(size, '\0');
    const std::int64_t read = CALL(mooncake_store_get_into)(handle, key, value.data(), size);
    return read < 0 ? std::to_string(read) : value.substr(0, static_cast<std::size_t>(read));
  }
  int exists(const char* key) { return CALL(mooncake_store_is_exist)(handle, key); }

  mooncake_store_t handle;
};

void clients_of_one_master_share_a_store() {
  Store owner(64 * mib), other(0), elsewhere(0, "10.0.0.1:50051");
  CHECK_EQUAL(owner.put("k", "value"), 0);
  CHECK_EQUAL(other.get("k", 100), "value");
  CHECK_EQUAL(other.put("k", "another"), 0);  // exists: the old bytes stay
  CHECK_EQUAL(owner.get("k", 100), "value");
  CHECK_EQUAL(owner.get("k", 4), "-600");
  CHECK_EQUAL(owner.get("none", 4), "-704");
  CHECK_EQUAL(elsewhere.exists("k"), 0);
  CHECK_EQUAL(elsewhere.put("k", "x"), -200);  // nobody has brought a segment there
  CHECK_EQUAL(CALL(mooncake_store_get_size)(other.handle, "k"), 5);
  CHECK_EQUAL(CALL(mooncake_store_remove)(other.handle, "k", 0), -706);
  CHECK_EQUAL(CALL(mooncake_store_remove)(other.handle, "k", 1), 0);
  CHECK_EQUAL(CALL(mooncake_store_remove)(other.handle, "k", 1), -704);
  char name[64];
  CHECK_EQUAL(CALL(mooncake_store_get_hostname)(other.handle, name, sizeof name), 0);
  CHECK(std::string(name).starts_with("127.0.0.1:"));
  CHECK_EQUAL(CALL(mooncake_store_get_hostname)(other.handle, name, 3), -1);
}

void the_owner_takes_its_segment_along() {
  Store other(0);
  {
    Store owner(16 * mib);
    CHECK_EQUAL(other.put("k", "value"), 0);
    CHECK_EQUAL(other.exists("k"), 1);
  }
  CHECK_EQUAL(other.exists("k"), 0);
  CHECK_EQUAL(other.put("k", "value"), -200);
  Store again(16 * mib);
  CHECK_EQUAL(other.put("k", "value"), 0);
}

void sizes_and_limits() {
  Store store(16 * mib, "m", 1000);
  const std::string large(1001, 'x');
  CHECK_EQUAL(CALL(mooncake_store_put)(store.handle, "k", large.data(), 1001, nullptr), -600);
  CHECK_EQUAL(CALL(mooncake_store_put)(store.handle, "k", large.data(), 1000, nullptr), 0);
  CHECK_EQUAL(CALL(mooncake_store_put)(store.handle, "e", large.data(), 0, nullptr), -600);
  CHECK_EQUAL(store.put("e", ""), 0);
  CHECK_EQUAL(store.exists("e"), 0);
  CHECK_EQUAL(store.put("", "x"), -600);
  CHECK_EQUAL(store.put("big", std::string(17 * mib, 'x')), -200);
  mooncake_replicate_config_t config{};
  char byte = 'x';
  CHECK_EQUAL(CALL(mooncake_store_put_from)(store.handle, "c", &byte, 1, &config), -600);  // no replica wanted
  config.replica_num = 2;
  config.with_hard_pin = 1;
  CHECK_EQUAL(CALL(mooncake_store_put_from)(store.handle, "c", &byte, 1, &config), 0);
}

void batches() {
  Store store(16 * mib);
  std::string a = "first", b = "second!", c = "other";
  const char* keys[] = {"d", "d", "e", ""};
  void* buffers[] = {a.data(), b.data(), c.data(), c.data()};
  size_t sizes[] = {a.size(), b.size(), c.size(), c.size()};
  int codes[4];
  CHECK_EQUAL(CALL(mooncake_store_batch_put_from)(store.handle, keys, buffers, sizes, 4, nullptr, codes), 0);
  CHECK(codes[0] == 0 && codes[1] == 0 && codes[2] == 0 && codes[3] == -600);
  CHECK_EQUAL(store.get("d", 100), "second!");  // the last of equal keys counts
  std::string x(8, '.'), y(8, '.'), z(2, '.');
  const char* wanted[] = {"d", "d", "e", "none"};
  void* into[] = {x.data(), y.data(), z.data(), z.data()};
  size_t room[] = {8, 8, 2, 2};
  int64_t read[4];
  CHECK_EQUAL(CALL(mooncake_store_batch_get_into)(store.handle, wanted, into, room, 4, read), 0);
  CHECK(read[0] == 7 && read[1] == 7 && read[2] == -600 && read[3] == -704);
  CHECK_EQUAL(x, "........");  // only the last valid destination is written
  CHECK_EQUAL(y, "second!.");
  CHECK_EQUAL(z, "..");
  int present[4];
  CHECK_EQUAL(CALL(mooncake_store_batch_is_exist)(store.handle, wanted, 4, present), 0);
  CHECK(present[0] == 1 && present[1] == 1 && present[2] == 1 && present[3] == 0);
  CHECK_EQUAL(CALL(mooncake_store_remove_by_regex)(store.handle, "[", 1), -600);
  CHECK_EQUAL(CALL(mooncake_store_remove_by_regex)(store.handle, "^d", 1), 1);
  CHECK_EQUAL(CALL(mooncake_store_remove_all)(store.handle, 0), 0);
  CHECK_EQUAL(CALL(mooncake_store_remove_all)(store.handle, 1), 1);
}

void bad_arguments_are_codes() {
  Store store(16 * mib);
  char byte = 'x';
  CHECK_EQUAL(CALL(mooncake_store_put_from)(nullptr, "k", &byte, 1, nullptr), -1);
  CHECK_EQUAL(CALL(mooncake_store_put_from)(store.handle, nullptr, &byte, 1, nullptr), -1);
  CHECK_EQUAL(CALL(mooncake_store_put_from)(store.handle, "k", nullptr, 1, nullptr), -1);
  CHECK_EQUAL(CALL(mooncake_store_put_from)(store.handle, "k", reinterpret_cast<void*>(4096), 100, nullptr), -800);
  CHECK_EQUAL(store.exists("k"), 0);
  CHECK_EQUAL(store.put("k", "value"), 0);
  CHECK_EQUAL(CALL(mooncake_store_get_into)(store.handle, "k", reinterpret_cast<void*>(4096), 100), -800);
  CHECK_EQUAL(CALL(mooncake_store_is_exist)(store.handle, nullptr), -1);
  const char* keys[] = {"k", nullptr};
  int results[2];
  CHECK_EQUAL(CALL(mooncake_store_batch_is_exist)(store.handle, keys, 2, results), -1);
  CHECK_EQUAL(CALL(mooncake_store_remove_all)(nullptr, 0), -1);
  CALL(mooncake_store_destroy)(nullptr);
}

void before_and_around_setup() {
  const mooncake_store_t store = CALL(mooncake_store_create)();
  char byte = 'x';
  CHECK_EQUAL(CALL(mooncake_store_health_check)(store), 1);
  CHECK_EQUAL(CALL(mooncake_store_put_from)(store, "k", &byte, 1, nullptr), -600);
  CHECK_EQUAL(CALL(mooncake_store_put_from)(store, "k", &byte, 0, nullptr), -600);
  CHECK_EQUAL(CALL(mooncake_store_get_into)(store, "k", &byte, 1), -600);
  CHECK_EQUAL(CALL(mooncake_store_is_exist)(store, "k"), -600);
  CHECK_EQUAL(CALL(mooncake_store_remove_all)(store, 1), -600);
  CHECK_EQUAL(CALL(mooncake_store_register_buffer)(store, &byte, 1), -600);
  const auto setup = [&](const char* host, const char* meta, std::uint64_t segment, const char* protocol, const char* master) {
    return CALL(mooncake_store_setup)(store, host, meta, segment, mib, protocol, "", master);
  };
  CHECK_EQUAL(setup("", "P2PHANDSHAKE", 0, "tcp", "m"), -600);
  CHECK_EQUAL(setup("h", "P2PHANDSHAKE", 1024, "tcp", "m"), -600);
  CHECK_EQUAL(setup("h", "P2PHANDSHAKE", 0, "nope", "m"), -1);
  CHECK_EQUAL(setup("h", "bogus", 0, "tcp", "m"), -600);
  CHECK_EQUAL(setup("h", "P2PHANDSHAKE", 0, "tcp", ""), -600);
  CHECK_EQUAL(setup(nullptr, "P2PHANDSHAKE", 0, "tcp", "m"), -1);
  CHECK_EQUAL(CALL(mooncake_store_health_check)(store), 1);
  CHECK_EQUAL(setup("h", "http://h:8080/metadata", 0, "tcp", "m"), 0);
  CHECK_EQUAL(setup("h", "P2PHANDSHAKE", 0, "tcp", "m"), 0);  // again, without a close
  CHECK_EQUAL(CALL(mooncake_store_health_check)(store), 0);
  CHECK_EQUAL(CALL(mooncake_store_register_buffer)(store, &byte, 0), -600);
  CHECK_EQUAL(CALL(mooncake_store_register_buffer)(store, &byte, 1), 0);
  CHECK_EQUAL(CALL(mooncake_store_register_buffer)(store, &byte, 1), -600);
  CHECK_EQUAL(CALL(mooncake_store_unregister_buffer)(store, &byte), 0);
  CHECK_EQUAL(CALL(mooncake_store_unregister_buffer)(store, &byte), -600);
  CALL(mooncake_store_destroy)(store);
  const mooncake_store_t local = CALL(mooncake_store_create)();
  CHECK_EQUAL(CALL(mooncake_store_init_all)(local, "tcp", "", 16 * mib), 0);
  CHECK_EQUAL(CALL(mooncake_store_put_from)(local, "k", &byte, 1, nullptr), 0);
  CALL(mooncake_store_destroy)(local);
}

void many_threads() {
  Store owner(64 * mib);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      Store client(0);
      for (int i = 0; i < 200; i++) {
        const std::string key = std::to_string(t) + "-" + std::to_string(i);
        wrong += client.put(key.c_str(), key) != 0;
        wrong += client.get(key.c_str(), 100) != key;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(wrong.load(), 0);
}

}  // namespace

int main(int, char** arguments) {
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return mooncake_kv::test::finish();
  }
  clients_of_one_master_share_a_store();
  the_owner_takes_its_segment_along();
  sizes_and_limits();
  batches();
  bad_arguments_are_codes();
  before_and_around_setup();
  many_threads();
  return mooncake_kv::test::finish();
}
