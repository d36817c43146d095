#include "memory/arena.h"

#include <cstring>
#include <stdexcept>
#include <system_error>

#include "check.h"
#include "memory/probe.h"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

using namespace mooncake_kv;

static void zero_filled_and_writable() {
  const auto arena = make_host_arena(100'001);
  CHECK_EQUAL(arena->size(), 100'001u);
  CHECK_EQUAL(arena->address() % 4096, 0u);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(arena->host_bytes()), arena->address());
  bool zero = true;
  for (std::uint64_t i = 0; i < arena->size(); i++) zero = zero && arena->host_bytes()[i] == 0;
  CHECK(zero);
  arena->host_bytes()[100'000] = 7;
  CHECK_EQUAL(arena->host_bytes()[100'000], 7);
}

static void refuses_what_no_system_has() {
  CHECK_THROWS(std::invalid_argument, make_host_arena(0));
  CHECK_THROWS(std::system_error, make_host_arena(UINT64_MAX));
  CHECK_THROWS(std::system_error, make_host_arena(std::uint64_t{1} << 62));
}

#if defined(__linux__)
static void another_mapping_of_the_descriptor_sees_the_bytes() {
  const auto arena = make_host_arena(8192);
  CHECK(arena->fd() >= 0);
  void* other = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd(), 0);
  CHECK(other != MAP_FAILED);
  std::memcpy(arena->host_bytes() + 4000, "mooncake", 8);
  CHECK_EQUAL(std::memcmp(static_cast<char*>(other) + 4000, "mooncake", 8), 0);
  static_cast<char*>(other)[1] = 42;
  CHECK_EQUAL(arena->host_bytes()[1], 42);
  munmap(other, 8192);
  CHECK((fcntl(arena->fd(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(ftruncate(arena->fd(), 4096) != 0);  // nobody can take the pages away
}

static void gives_memory_and_descriptor_back() {
  auto arena = make_host_arena(1 << 20);
  const std::uint64_t address = arena->address();
  const int fd = arena->fd();
  CHECK(is_accessible(address, 1 << 20));
  arena.reset();
  CHECK(!is_accessible(address, 1 << 20));
  CHECK_EQUAL(fcntl(fd, F_GETFD), -1);
}

static void knows_accessible_memory() {
  const auto arena = make_host_arena(3 * 4096);
  const std::uint64_t address = arena->address();
  CHECK(is_accessible(address + 100, 3 * 4096 - 100));
  CHECK(is_accessible(address, 1));
  CHECK(!is_accessible(4096, 1));
  CHECK(!is_accessible(UINT64_MAX - 10, 5));
  mprotect(reinterpret_cast<void*>(address + 4096), 4096, PROT_READ);
  CHECK(!is_accessible(address, 3 * 4096));
  CHECK(!is_accessible(address + 4096, 1));
  CHECK(is_accessible(address + 8192, 4096));
}
#endif

int main() {
  zero_filled_and_writable();
  refuses_what_no_system_has();
#if defined(__linux__)
  another_mapping_of_the_descriptor_sees_the_bytes();
  gives_memory_and_descriptor_back();
  knows_accessible_memory();
#endif
  return test::finish();
}
