#pragma once

#include <chrono>
#include <cstdint>

namespace mooncake_kv {

/// When a call must have its answer. Always in real time, whatever clock the store's leases run on.
class Deadline {
 public:
  /// Never comes.
  Deadline() = default;
  static Deadline after_ms(std::uint64_t ms) {
    // Beyond a century nobody waits, and the sum can't overflow.
    constexpr std::uint64_t longest = std::uint64_t{100} * 366 * 86'400'000;
    Deadline deadline;
    deadline.at_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms < longest ? ms : longest);
    return deadline;
  }
  bool never() const { return at_ == std::chrono::steady_clock::time_point::max(); }
  bool over() const { return !never() && std::chrono::steady_clock::now() >= at_; }

 private:
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace mooncake_kv
