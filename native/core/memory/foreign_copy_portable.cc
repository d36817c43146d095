#include <cstring>

#include "memory/foreign_copy.h"

namespace mooncake_kv {

bool copy_from_foreign(std::uint8_t* to, std::uint64_t address, std::size_t size) {
  std::memcpy(to, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address)), size);
  return true;
}

bool copy_to_foreign(std::uint64_t address, const std::uint8_t* from, std::size_t size) {
  std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), from, size);
  return true;
}

}  // namespace mooncake_kv
