#include "store/evictor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

namespace mooncake_kv {

Evictor::Evictor(const StoreOptions& options, StoreClock& clock, ValuePool& pool, ObjectTable& table, ParkedObjects& parked)
    : options_(options), clock_(clock), pool_(pool), table_(table), parked_(parked) {}

Evictor::~Evictor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Evictor::above_watermark() const {
  const ValuePool::Usage usage = pool_.usage();
  return static_cast<double>(usage.used) > options_.eviction_high_watermark * static_cast<double>(usage.capacity);
}

void Evictor::refused() {
  refused_.store(true, std::memory_order_relaxed);
  wake();
}

void Evictor::used_more() {
  if (!awake_.load(std::memory_order_relaxed) && above_watermark()) wake();
}

void Evictor::wake() {
  if (clock_.manual() || awake_.exchange(true)) return;
  {
    const std::lock_guard lock(mutex_);
    try {
      if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { run(); });
    } catch (const std::exception&) {
      awake_ = false;  // no thread to be had now: the next need tries again
      return;
    }
  }
  work_.notify_all();
}

void Evictor::run() {
  std::unique_lock lock(mutex_);
  bool idle = false;
  for (;;) {
    // Between rounds as long as there is need; longer when the last one found only what is protected.
    const auto pause = std::chrono::microseconds(idle ? 5 * period : period);
    if (work_.wait_for(lock, pause, [this] { return stopping_; })) return;
    lock.unlock();
    idle = round(clock_.now()) == 0;
    lock.lock();
    if (due()) continue;
    awake_.store(false);
    // Whoever saw it awake still relied on this thread.
    if (due()) {
      awake_.store(true);
      continue;
    }
    work_.wait(lock, [this] { return stopping_ || awake_.load(); });
    if (stopping_) return;
    idle = false;
  }
}

std::uint64_t Evictor::round(std::int64_t now) {
  parked_.release_due(now);
  const bool refused = refused_.exchange(false, std::memory_order_relaxed);
  const ValuePool::Usage usage = pool_.usage();
  if (usage.capacity == 0) return 0;
  const double used = static_cast<double>(usage.used) / static_cast<double>(usage.capacity);
  if (!refused && used <= options_.eviction_high_watermark) return 0;
  const double share = std::max(options_.eviction_ratio, used - options_.eviction_high_watermark + options_.eviction_ratio);
  const double victims = std::ceil(static_cast<double>(table_.size()) * share);
  if (victims < 1) return 0;
  try {
    const ObjectTable::Evicted evicted = table_.evict(static_cast<std::uint64_t>(victims), options_.evict_soft_pinned, now);
    evicted_.fetch_add(evicted.objects, std::memory_order_relaxed);
    evicted_bytes_.fetch_add(evicted.bytes, std::memory_order_relaxed);
    return evicted.objects;
  } catch (const std::exception&) {
    return 0;  // no memory for the bookkeeping: the next round tries again
  }
}

void Evictor::advance(std::int64_t microseconds) {
  const std::lock_guard lock(mutex_);
  constexpr std::int64_t latest = INT64_MAX / 2;  // the sum with any time to live is a time still
  const std::int64_t end = std::min(clock_.now() + std::min(microseconds, latest), latest);
  while (next_round_ <= end) {
    if (!due()) {
      // Nothing comes to need room while only the clock moves.
      next_round_ += (end - next_round_) / period * period + period;
      break;
    }
    clock_.move_to(next_round_);
    const bool idle = round(next_round_) == 0;
    const std::int64_t now = next_round_;
    next_round_ += period;
    if (!idle) continue;
    // Rounds find nothing until a lease, a pin or a release falls due.
    const std::int64_t change = std::min({table_.next_change(now), parked_.next_due(), end + 1});
    if (change > next_round_) next_round_ += (change - next_round_ + period - 1) / period * period;
  }
  clock_.move_to(end);
}

}  // namespace mooncake_kv
