#pragma once

#include <cstdint>
#include <memory>

namespace mooncake_kv {

/// A memory region with a fixed address, out of which objects are put and into which they are read. Memory of a
/// device is another kind of the same thing.
class Arena {
 public:
  virtual ~Arena() = default;
  /// The first byte, as an address of this process.
  virtual std::uint64_t address() const = 0;
  virtual std::uint64_t size() const = 0;
  /// The bytes for the CPU, or null where it can't reach them.
  virtual std::uint8_t* host_bytes() const = 0;
  /// A descriptor of the same pages that another process can map, or -1.
  virtual int fd() const = 0;
};

/// An arena in main memory, zero-filled. Throws what Mapping throws.
std::shared_ptr<Arena> make_host_arena(std::uint64_t size);

}  // namespace mooncake_kv
