#include "mooncake_c/call.h"

#include <algorithm>
#include <exception>

namespace mooncake_kv::mooncake_c {

void Call::run(Client& client, Staging& staging) {
  if (given_up()) return;
  std::string error;
  try {
    work(client, staging);
    staging.trim();
    return;
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  const std::lock_guard lock(mutex_);
  error_ = error.empty() ? "it failed without a reason" : error;
}

bool Call::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  return !copying_;
}

bool Call::given_up() const {
  const std::lock_guard lock(mutex_);
  return given_up_;
}

std::vector<std::int64_t> Call::answers() const {
  const std::lock_guard lock(mutex_);
  return answers_;
}

std::string Call::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Call::answer(std::size_t index, std::int64_t value) {
  const std::lock_guard lock(mutex_);
  answers_[index] = value;
}

void Call::answer_all(std::int64_t value) {
  const std::lock_guard lock(mutex_);
  std::ranges::fill(answers_, value);
}

bool Call::begin_copying() {
  const std::lock_guard lock(mutex_);
  if (given_up_) return false;
  copying_ = true;
  return true;
}

void Call::end_copying() {
  const std::lock_guard lock(mutex_);
  copying_ = false;
}

}  // namespace mooncake_kv::mooncake_c
