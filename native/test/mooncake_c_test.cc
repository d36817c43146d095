#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "memory/arena.h"
#include "mooncake_c/call_threads.h"
#include "mooncake_c/get_call.h"
#include "mooncake_c/key_calls.h"
#include "mooncake_c/put_call.h"

// Against fake_mooncake.cc, which ends the process for every call that it should never have got.

using namespace mooncake_kv;
using namespace mooncake_kv::mooncake_c;
using std::chrono::milliseconds;

namespace {

const SetupConfig config{"host", "P2PHANDSHAKE", 0, 0, "tcp", "", "master:1"};

struct Keys {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> offsets{0};

  explicit Keys(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      bytes.insert(bytes.end(), key.begin(), key.end());
      offsets.push_back(static_cast<std::uint32_t>(bytes.size()));
    }
  }
  KeyBatch view() const { return {bytes.data(), offsets.data(), offsets.size() - 1}; }
};

/// One row a key: `bytes` at `address`, and on from there.
OwnedSegments rows(std::uint64_t address, std::size_t count, std::uint64_t bytes) {
  OwnedSegments segments;
  segments.row_offsets.push_back(0);
  for (std::size_t i = 0; i < count; i++) {
    segments.addresses.push_back(address + i * bytes);
    segments.sizes.push_back(bytes);
    segments.row_offsets.push_back(static_cast<std::uint32_t>(i + 1));
  }
  return segments;
}

/// A set-up client with its threads.
struct World {
  std::shared_ptr<Client> client = std::make_shared<Client>();
  std::shared_ptr<CallThreads> threads;
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  std::shared_ptr<Arena> arena = make_host_arena(1 << 20);

  explicit World(unsigned count = 4, std::uint64_t staging = 4096) : threads(CallThreads::make(client, count, staging)) {
    memory->regions.add(arena->address(), arena->size(), arena);
    CHECK_EQUAL(run(std::make_shared<SetupCall>(FAKE_MOONCAKE, config))[0], 0);
  }
  ~World() {
    threads->stop();
    client->close();
  }

  /// Waits for the end of the call, or gives it up; its answers.
  std::vector<std::int64_t> run(const std::shared_ptr<Call>& call, milliseconds deadline = milliseconds(20'000)) {
    auto ended = std::make_shared<std::atomic<bool>>(false);
    threads->post(call, [ended] { ended->store(true); });
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!ended->load() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
    if (!ended->load()) {
      const bool settled = call->give_up();
      threads->lose(*call);
      while (!settled && !ended->load()) std::this_thread::yield();
    }
    return call->answers();
  }

  std::shared_ptr<Call> put(const Keys& keys, std::uint64_t offset, std::uint64_t bytes) {
    return std::make_shared<PutCall>(memory, keys.view(), rows(arena->address() + offset, keys.view().count, bytes), mooncake_c::PutConfig{});
  }
  std::shared_ptr<Call> get(const Keys& keys, std::uint64_t offset, std::uint64_t bytes) {
    return std::make_shared<GetCall>(memory, keys.view(), rows(arena->address() + offset, keys.view().count, bytes));
  }
};

void test_calls() {
  World world;
  const Keys keys({"a", "b", "", "c"});
  std::memset(world.arena->host_bytes(), 7, 4096);
  const auto put = world.run(world.put(keys, 0, 1000));
  CHECK(put == (std::vector<std::int64_t>{0, 0, -600, 0}));
  const auto get = world.run(world.get(keys, 8192, 1000));
  CHECK(get == (std::vector<std::int64_t>{1000, 1000, -704, 1000}));
  CHECK(std::memcmp(world.arena->host_bytes(), world.arena->host_bytes() + 8192, 1000) == 0);
  CHECK_EQUAL(world.arena->host_bytes()[8192 + 2000], 0);
}

void test_client_ends_with_its_last_call() {
  auto client = std::make_shared<Client>();
  CHECK_EQUAL(client->set_up(FAKE_MOONCAKE, config), 0);
  CHECK_EQUAL(client->set_up(FAKE_MOONCAKE, config), -600);
  {
    const Client::Use use(*client);
    CHECK(use);
    client->close();
    CHECK(!client->destroyed(milliseconds(0)));
    CHECK(!Client::Use(*client));
  }
  CHECK(client->destroyed(milliseconds(0)));
  CHECK(Client().destroyed(milliseconds(0)));
}

void test_missing_library() {
  Client client;
  CHECK_THROWS(std::runtime_error, client.set_up("/nowhere/lib.so", config));
  CHECK(client.destroyed(milliseconds(0)));
}

/// Calls that hang are given up at every moment; afterwards nobody touches the memory, and the threads are replaced.
void test_giving_up() {
  World world(2);
  const Keys stored({"hang:1:0"});
  std::memset(world.arena->host_bytes(), 1, 64);
  CHECK_EQUAL(world.run(world.put(stored, 0, 64))[0], 0);
  for (int round = 0; round < 60; round++) {
    std::uint8_t* to = world.arena->host_bytes() + 4096;
    std::memset(to, 0, 64);
    const auto answers = world.run(world.get(stored, 4096, 64), milliseconds(round % 4));
    CHECK(answers[0] == 64 || answers[0] == -901);
    // Read at once: ThreadSanitizer sees any thread that still writes.
    const int sum = to[0] + to[63];
    CHECK_EQUAL(sum, answers[0] == 64 ? 2 : 0);
  }
  const Keys slow({"hang:200:0"});
  for (int i = 0; i < 5; i++) CHECK_EQUAL(world.run(world.put(slow, 0, 64), milliseconds(20))[0], -901);
  CHECK(world.threads->lost() >= 1);
  CHECK_EQUAL(world.run(std::make_shared<ExistsCall>(stored.view()))[0], 1);
  for (int i = 0; i < 100 && world.threads->lost() > 0; i++) std::this_thread::sleep_for(milliseconds(20));
  CHECK_EQUAL(world.threads->lost(), 0u);
}

void test_many_at_once() {
  World world(3);
  std::vector<std::thread> users;
  for (int user = 0; user < 6; user++)
    users.emplace_back([&world, user] {
      const std::uint64_t offset = static_cast<std::uint64_t>(user) * 65536;
      std::uint8_t* own = world.arena->host_bytes() + offset;
      for (int round = 0; round < 20; round++) {
        std::vector<std::string> names;
        for (int i = 0; i < 50; i++) names.push_back(std::to_string(user) + "-" + std::to_string(round) + "-" + std::to_string(i));
        const Keys keys(names);
        std::memset(own, user * 20 + round, 50 * 300);
        world.run(world.put(keys, offset, 300));
        std::memset(own, 0, 50 * 300);
        const auto answers = world.run(world.get(keys, offset, 300));
        for (const std::int64_t answer : answers) CHECK_EQUAL(answer, 300);
        CHECK_EQUAL(own[0], user * 20 + round);
        CHECK_EQUAL(own[50 * 300 - 1], user * 20 + round);
      }
    });
  for (std::thread& user : users) user.join();
}

}  // namespace

int main() {
  test_calls();
  test_client_ends_with_its_last_call();
  test_missing_library();
  test_giving_up();
  test_many_at_once();
  return test::finish();
}
