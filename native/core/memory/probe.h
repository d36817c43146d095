#pragma once

#include <cstdint>

namespace mooncake_kv {

/// Whether all of [address, address + size) is memory that this process may read and write now. A platform that
/// can't tell answers true. The range must not wrap around, and size must not be 0.
bool is_accessible(std::uint64_t address, std::uint64_t size);

}  // namespace mooncake_kv
