#include "store/parked_objects.h"

#include <utility>

namespace mooncake_kv {

void ParkedObjects::park(ObjectRef object, std::int64_t now) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    parked_.push_back({now + timeout_, std::move(object)});
  } catch (...) {
  }
}

void ParkedObjects::release_due(std::int64_t now) noexcept {
  for (;;) {
    ObjectRef due;  // goes outside the lock
    const std::lock_guard lock(mutex_);
    if (parked_.empty() || parked_.front().due > now) return;
    due = std::move(parked_.front().object);
    parked_.pop_front();
  }
}

std::int64_t ParkedObjects::next_due() const {
  const std::lock_guard lock(mutex_);
  return parked_.empty() ? INT64_MAX : parked_.front().due;
}

void ParkedObjects::clear() noexcept {
  std::deque<Parked> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(parked_);
  }
}

}  // namespace mooncake_kv
