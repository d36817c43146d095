#include "mooncake_c/call_threads.h"

#include <system_error>
#include <thread>
#include <utility>

namespace mooncake_kv::mooncake_c {
namespace {

/// A library in which this many calls hang gets no further ones until some have come back.
constexpr std::size_t most_lost = 32;

}  // namespace

std::shared_ptr<CallThreads> CallThreads::make(std::shared_ptr<Client> client, unsigned threads, std::uint64_t staging_bytes) {
  return std::shared_ptr<CallThreads>(new CallThreads(std::move(client), threads, staging_bytes));
}

void CallThreads::post(std::shared_ptr<Call> call, std::function<void()> done) {
  std::unique_lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    call->refuse();
    done();
    return;
  }
  waiting_.push_back({std::move(call), std::move(done)});
  more_.notify_one();
  start_thread_if_needed(lock);
}

void CallThreads::lose(const Call& call) {
  std::unique_lock lock(mutex_);
  if (running_.erase(&call) == 0) return;
  lost_.insert(&call);
  count_hanging_calls(1);
  threads_--;
  start_thread_if_needed(lock);
}

void CallThreads::stop() {
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
    more_.notify_all();
  }
  for (const Job& job : dropped) {
    job.call->refuse();
    job.done();
  }
}

std::size_t CallThreads::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_.size();
}

void CallThreads::start_thread_if_needed(std::unique_lock<std::mutex>&) {
  if (waiting_.size() <= idle_ || threads_ >= wanted_ || lost_.size() >= most_lost) return;
  try {
    std::thread([self = shared_from_this()] { self->work(); }).detach();
    threads_++;
  } catch (const std::system_error&) {
    // The calls wait for another thread, or for their deadlines.
  }
}

void CallThreads::work() {
  Staging staging(client_, staging_bytes_);
  std::unique_lock lock(mutex_);
  for (;;) {
    idle_++;
    more_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    idle_--;
    if (waiting_.empty()) break;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    running_.insert(job.call.get());
    lock.unlock();
    job.call->run(*client_, staging);
    lock.lock();
    const bool goes_on = finished(*job.call);
    lock.unlock();
    job.done();
    job = {};
    lock.lock();
    if (!goes_on) return;
  }
  threads_--;
}

/// Whether the thread of a call that has come back takes another one.
bool CallThreads::finished(const Call& call) {
  if (lost_.erase(&call) == 0) {
    running_.erase(&call);
    return true;
  }
  count_hanging_calls(-1);
  if (stopping_ || threads_ >= wanted_) return false;
  threads_++;
  return true;
}

}  // namespace mooncake_kv::mooncake_c
