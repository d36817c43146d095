#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "memory/foreign_copy.h"
#include "memory/probe.h"

namespace mooncake_kv {
namespace {

using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

/// The kernel copies between two addresses of this process, and reports a bad one instead of raising a signal.
/// False when it may not; then nothing is known.
bool copy_by_kernel(Copy copy, std::uint8_t* own, std::uint64_t address, std::size_t size, bool& good) {
  constexpr std::size_t most = std::size_t{1} << 30;  // what one call transfers at most is near 2 GiB
  while (size > 0) {
    const std::size_t step = size < most ? size : most;
    const iovec local{own, step};
    const iovec remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), step};
    const ssize_t done = copy(getpid(), &local, 1, &remote, 1, 0);
    if (done < 0 && (errno == ENOSYS || errno == EPERM)) return false;
    if (done <= 0) {
      good = false;
      return true;
    }
    own += done;
    address += static_cast<std::uint64_t>(done);
    size -= static_cast<std::size_t>(done);
  }
  good = true;
  return true;
}

}  // namespace

bool copy_from_foreign(std::uint8_t* to, std::uint64_t address, std::size_t size) {
  bool good = false;
  if (copy_by_kernel(process_vm_readv, to, address, size, good)) return good;
  if (size > 0 && !is_accessible(address, size)) return false;
  std::memcpy(to, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address)), size);
  return true;
}

bool copy_to_foreign(std::uint64_t address, const std::uint8_t* from, std::size_t size) {
  bool good = false;
  if (copy_by_kernel(process_vm_writev, const_cast<std::uint8_t*>(from), address, size, good)) return good;
  if (size > 0 && !is_accessible(address, size)) return false;
  std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), from, size);
  return true;
}

}  // namespace mooncake_kv
