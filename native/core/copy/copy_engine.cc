#include "copy/copy_engine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <system_error>

namespace mooncake_kv {
namespace {

/// Below this, waking a helper costs more than it saves.
constexpr std::uint64_t large_plan = 1 << 20;
/// Bytes of a part: large enough that taking one costs nothing, small enough that nobody waits long for the last.
constexpr std::uint64_t part_bytes = 256 << 10;
/// More threads than this gain nothing: memory is the limit.
constexpr unsigned most_threads = 4;

unsigned helpers_for(unsigned threads) {
  if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 2u, most_threads);
  return threads - 1;
}

void copy_run(const CopyPlan::Run& run) { std::memcpy(run.to, run.from, run.size); }

}  // namespace

/// A plan under way. Threads take its parts until none is left.
class CopyEngine::Job {
 public:
  Job(const CopyPlan& plan, const Deadline& deadline) : plan_(plan), deadline_(deadline) {
    // A part starts at a run and a byte within it; runs that are larger than a part are cut.
    std::uint64_t room = 0;
    for (std::size_t run = 0; run < plan.runs().size(); run++) {
      std::uint64_t skip = 0;
      while (skip < plan.runs()[run].size) {
        if (room == 0) {
          parts_.push_back({run, skip});
          room = part_bytes;
        }
        const std::uint64_t step = std::min<std::uint64_t>(room, plan.runs()[run].size - skip);
        skip += step;
        room -= step;
      }
    }
  }

  void work() {
    for (;;) {
      const std::size_t part = next_.fetch_add(1, std::memory_order_relaxed);
      if (part >= parts_.size()) return;
      if (deadline_.over()) {
        late_.store(true, std::memory_order_relaxed);
        next_.store(parts_.size(), std::memory_order_relaxed);
        return;
      }
      copy_part(parts_[part]);
    }
  }

  /// Whether the deadline kept parts from being copied; known when nobody works any more.
  bool late() const { return late_.load(std::memory_order_relaxed); }
  bool exhausted() const { return next_.load(std::memory_order_relaxed) >= parts_.size(); }

  unsigned helpers = 0;  // guarded by the engine's mutex

 private:
  struct Part {
    std::size_t run;
    std::uint64_t skip;
  };

  void copy_part(const Part& part) {
    std::uint64_t room = part_bytes;
    std::uint64_t skip = part.skip;
    for (std::size_t at = part.run; room > 0 && at < plan_.runs().size(); at++) {
      const CopyPlan::Run& run = plan_.runs()[at];
      const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(room, run.size - skip));
      copy_run({run.to + skip, run.from + skip, size});
      room -= size;
      skip = 0;
    }
  }

  const CopyPlan& plan_;
  const Deadline& deadline_;
  std::vector<Part> parts_;
  std::atomic<bool> late_{false};
  std::atomic<std::size_t> next_{0};
};

CopyEngine::CopyEngine(unsigned threads) : helpers_wanted_(helpers_for(threads)) {}

CopyEngine::~CopyEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void CopyEngine::run(const CopyPlan& plan) { run(plan, Deadline()); }

bool CopyEngine::run(const CopyPlan& plan, const Deadline& deadline) {
  if (deadline.over()) return false;
  if (plan.bytes() < large_plan) {
    for (const CopyPlan::Run& run : plan.runs()) copy_run(run);
    return true;
  }
  Job job(plan, deadline);
  if (helpers_wanted_ == 0) {
    job.work();
    return !job.late();
  }
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
    start_helpers();
  }
  work_.notify_all();
  job.work();
  std::unique_lock lock(mutex_);
  std::erase(jobs_, &job);
  done_.wait(lock, [&] { return job.helpers == 0; });
  return !job.late();
}

/// Under the lock. Without threads the callers do all the work, so a refusal is no error.
void CopyEngine::start_helpers() {
  try {
    helpers_.reserve(helpers_wanted_);
    while (helpers_.size() < helpers_wanted_) helpers_.emplace_back([this] { help(); });
  } catch (const std::exception&) {
  }
}

void CopyEngine::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto open = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* job) { return !job->exhausted(); });
    if (open == jobs_.end()) {
      if (stopping_) return;
      work_.wait(lock);
      continue;
    }
    Job* job = *open;
    job->helpers++;
    lock.unlock();
    job->work();
    lock.lock();
    if (--job->helpers == 0) done_.notify_all();
  }
}

}  // namespace mooncake_kv
