#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "mooncake_c/call.h"

namespace mooncake_kv::mooncake_c {

/// The threads of one store that go into the library, and may be stuck there for minutes. They start with the calls, and
/// wait for more. A thread whose call is given up counts as lost, and another takes its place; it ends when it comes
/// back. When too many are lost, calls wait for one of them, or for their own deadline.
class CallThreads : public std::enable_shared_from_this<CallThreads> {
 public:
  /// `threads` work at a time, each with `staging_bytes` of memory.
  static std::shared_ptr<CallThreads> make(std::shared_ptr<Client> client, unsigned threads, std::uint64_t staging_bytes);

  /// Runs the call on one of the threads, then `done` there, whatever became of it.
  void post(std::shared_ptr<Call> call, std::function<void()> done);
  /// Says that nobody waits for the call any more.
  void lose(const Call& call);
  /// Threads end when they have nothing to do; calls that wait are refused.
  void stop();

  /// Threads that are stuck in calls which were given up.
  std::size_t lost() const;

 private:
  struct Job {
    std::shared_ptr<Call> call;
    std::function<void()> done;
  };

  CallThreads(std::shared_ptr<Client> client, unsigned threads, std::uint64_t staging_bytes)
      : client_(std::move(client)), wanted_(threads), staging_bytes_(staging_bytes) {}
  void start_thread_if_needed(std::unique_lock<std::mutex>& lock);
  void work();
  bool finished(const Call& call);

  const std::shared_ptr<Client> client_;
  const unsigned wanted_;
  const std::uint64_t staging_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Job> waiting_;
  std::unordered_set<const Call*> running_;
  std::unordered_set<const Call*> lost_;
  unsigned threads_ = 0;  // those that are not lost
  unsigned idle_ = 0;
  bool stopping_ = false;
};

}  // namespace mooncake_kv::mooncake_c
