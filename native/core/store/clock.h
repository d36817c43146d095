#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace mooncake_kv {

/// Microseconds since the store was opened, never falling; it starts at 1, so that 0 can mean "never". Real time, or time that a test moves on by hand.
class StoreClock {
 public:
  explicit StoreClock(bool manual) : manual_(manual), start_(std::chrono::steady_clock::now()) {}

  bool manual() const { return manual_; }
  std::int64_t now() const {
    if (manual_) return manual_now_.load(std::memory_order_acquire);
    return 1 + std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start_).count();
  }
  /// For a manual clock; an earlier time changes nothing.
  void move_to(std::int64_t time) {
    std::int64_t now = manual_now_.load(std::memory_order_relaxed);
    while (now < time && !manual_now_.compare_exchange_weak(now, time, std::memory_order_acq_rel)) {
    }
  }

 private:
  const bool manual_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<std::int64_t> manual_now_{1};
};

}  // namespace mooncake_kv
