#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "memory/mapping.h"
#include "mooncake_c/client.h"

namespace mooncake_kv::mooncake_c {

/// Memory of one thread in which values lie contiguous while the library sends or receives them, registered with the
/// library. The library sees nobody else's memory: a call that hangs, and goes on after everybody has given up on it,
/// can write nothing but this.
class Staging {
 public:
  /// `bytes` are taken with the first use.
  Staging(std::shared_ptr<Client> client, std::uint64_t bytes) : client_(std::move(client)), wanted_(bytes) {}
  ~Staging() { release(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// How much can be staged without taking more memory.
  std::uint64_t size() const { return memory_ ? memory_->size() : wanted_; }

  /// At least `bytes` of memory: 0, or Mooncake's code (-10 when the system has no memory).
  std::int32_t reserve(const Client::Use& use, std::uint64_t bytes);
  std::uint8_t* data() const { return memory_->data(); }

  /// Gives away what one large value took beyond the usual size.
  void trim() {
    if (memory_ && memory_->size() > wanted_) release();
  }

  /// Takes the memory back from the library and gives it away; memory that the library can't give back any more stays
  /// until the client is destroyed.
  void release();

 private:
  std::shared_ptr<Client> client_;
  const std::uint64_t wanted_;
  std::unique_ptr<Mapping> memory_;
};

}  // namespace mooncake_kv::mooncake_c
