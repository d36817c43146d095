#pragma once

#include <cstdint>

namespace mooncake_kv {

/// Zero-filled, page-aligned memory of this process, given back by the destructor. Pages are taken from the system
/// when they are first written, and huge pages are asked for where the platform has them.
class Mapping {
 public:
  enum class Kind {
    /// Backed by a file descriptor where the platform can, so that another process may map the same pages.
    shareable,
    /// Known to this process only.
    anonymous,
  };

  /// Throws std::system_error when the system refuses, std::invalid_argument for a size of 0.
  Mapping(std::uint64_t size, Kind kind);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::uint8_t* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  /// The descriptor of the pages, or -1. It belongs to this object; it is closed on exec.
  int fd() const { return fd_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
  int fd_ = -1;
};

}  // namespace mooncake_kv
