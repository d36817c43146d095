#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace mooncake_kv {

/// Says that nobody waits for a call any more. Whoever began the call sets it, the call looks at it.
using CancelFlag = std::shared_ptr<std::atomic<bool>>;

/// When a call must have its answer: at a time, or when it is cancelled. Always in real time, whatever clock the store's
/// leases run on.
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
  /// The same deadline, which also comes once the flag is set. A null flag never is.
  Deadline or_when(CancelFlag flag) const {
    Deadline deadline = *this;
    deadline.cancelled_ = std::move(flag);
    return deadline;
  }

  bool never() const { return !timed() && !cancelled_; }
  bool over() const {
    if (cancelled_ && cancelled_->load(std::memory_order_relaxed)) return true;
    return timed() && std::chrono::steady_clock::now() >= at_;
  }

 private:
  bool timed() const { return at_ != std::chrono::steady_clock::time_point::max(); }

  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::time_point::max();
  CancelFlag cancelled_;
};

}  // namespace mooncake_kv
