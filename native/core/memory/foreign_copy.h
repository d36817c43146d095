#pragma once

#include <cstddef>
#include <cstdint>

namespace mooncake_kv {

/// Copies between our own memory and an address that somebody else gave, which may be anything: false, instead of the
/// end of the process, when a byte of [address, address + size) can't be read or written. What was copied before the
/// bad byte stays copied. A platform that can't tell copies blindly.
bool copy_from_foreign(std::uint8_t* to, std::uint64_t address, std::size_t size);
bool copy_to_foreign(std::uint64_t address, const std::uint8_t* from, std::size_t size);

}  // namespace mooncake_kv
