#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "store/clock.h"
#include "store/object_table.h"
#include "store/options.h"
#include "store/parked_objects.h"
#include "store/value_pool.h"

namespace mooncake_kv {

/// Makes room as the thread of Mooncake's master does: a round at most every 10 ms, when more than the watermark is used
/// or a write found no room. It sleeps while there is nothing to do, and starts with the first need. With a manual clock
/// there is no thread; rounds fall due while the clock is moved.
class Evictor {
 public:
  static constexpr std::int64_t period = 10'000;  // microseconds

  Evictor(const StoreOptions& options, StoreClock& clock, ValuePool& pool, ObjectTable& table, ParkedObjects& parked);
  ~Evictor();
  Evictor(const Evictor&) = delete;
  Evictor& operator=(const Evictor&) = delete;

  /// After a write that found no room.
  void refused();
  /// After a write that found some.
  void used_more();
  /// Moves a manual clock, with the rounds that fall due on the way.
  void advance(std::int64_t microseconds);

  std::uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  std::uint64_t evicted_bytes() const { return evicted_bytes_.load(std::memory_order_relaxed); }

 private:
  bool above_watermark() const;
  bool due() const { return refused_.load(std::memory_order_relaxed) || above_watermark(); }
  void wake();
  void run();
  /// One round. Gives how many objects went.
  std::uint64_t round(std::int64_t now);

  const StoreOptions options_;
  StoreClock& clock_;
  ValuePool& pool_;
  ObjectTable& table_;
  ParkedObjects& parked_;
  std::atomic<bool> refused_{false};
  std::atomic<bool> awake_{false};
  std::atomic<std::uint64_t> evicted_{0};
  std::atomic<std::uint64_t> evicted_bytes_{0};
  std::mutex mutex_;
  std::condition_variable work_;
  std::thread thread_;
  bool stopping_ = false;
  std::int64_t next_round_ = period;  // of a manual clock; guarded by mutex_
};

}  // namespace mooncake_kv
