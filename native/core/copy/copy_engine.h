#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "copy/copy_plan.h"
#include "deadline.h"

namespace mooncake_kv {

/// Copies plans. A large one is cut into parts that the calling thread and the helper threads of the engine share;
/// the helpers start with the first large plan. Thread-safe: helpers go where there is work, and a caller never waits
/// for anything but its own plan.
class CopyEngine {
 public:
  /// `threads` copy one plan at most, the calling one included; 0 chooses by the number of processors.
  explicit CopyEngine(unsigned threads);
  ~CopyEngine();
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  void run(const CopyPlan& plan);
  /// False when the deadline came first: then some of the bytes are copied, nobody copies any more, and nobody knows
  /// which they are.
  bool run(const CopyPlan& plan, const Deadline& deadline);

 private:
  class Job;

  void start_helpers();
  void help();

  const unsigned helpers_wanted_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> helpers_;
  bool stopping_ = false;
};

}  // namespace mooncake_kv
