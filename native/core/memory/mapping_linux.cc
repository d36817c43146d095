#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>

#include "memory/mapping.h"

namespace mooncake_kv {
namespace {

[[noreturn]] void fail(int error, const char* call, std::uint64_t size) {
  throw std::system_error(error, std::generic_category(),
                          std::string(call) + " of " + std::to_string(size) + " bytes");
}

int make_memfd(std::uint64_t size) {
  const int fd = memfd_create("mooncake-kv-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) fail(errno, "memfd_create", size);
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) {
    const int error = errno;
    close(fd);
    fail(error, "ftruncate", size);
  }
  // Whoever gets the descriptor must not be able to shrink the file: touching the lost pages would kill this process.
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

}  // namespace

Mapping::Mapping(std::uint64_t size, Kind kind) : size_(size) {
  if (size == 0) throw std::invalid_argument("a mapping needs at least one byte");
  if (size > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) fail(EOVERFLOW, "mmap", size);
  int flags = MAP_NORESERVE;
  if (kind == Kind::shareable) {
    fd_ = make_memfd(size);
    flags |= MAP_SHARED;
  } else {
    flags |= MAP_PRIVATE | MAP_ANONYMOUS;
  }
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd_, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    if (fd_ >= 0) close(fd_);
    fail(error, "mmap", size);
  }
  // Advice only: a kernel without huge pages refuses, and ordinary pages do.
  madvise(data, size, MADV_HUGEPAGE);
  data_ = static_cast<std::uint8_t*>(data);
}

Mapping::~Mapping() {
  munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}

}  // namespace mooncake_kv
