#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>

#include "memory/mapping.h"

namespace mooncake_kv {

// Without a memfd, memory is an ordinary allocation: no descriptor, and no other process can map it.
Mapping::Mapping(std::uint64_t size, Kind) : size_(size) {
  if (size == 0) throw std::invalid_argument("a mapping needs at least one byte");
  if (size > std::numeric_limits<std::size_t>::max())
    throw std::system_error(std::make_error_code(std::errc::not_enough_memory), "calloc");
  data_ = static_cast<std::uint8_t*>(std::calloc(static_cast<std::size_t>(size), 1));
  if (data_ == nullptr) throw std::system_error(std::make_error_code(std::errc::not_enough_memory), "calloc");
}

Mapping::~Mapping() { std::free(data_); }

}  // namespace mooncake_kv
