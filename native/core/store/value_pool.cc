#include "store/value_pool.h"

namespace mooncake_kv {

ValuePool::ValuePool(std::uint64_t capacity) : space_(capacity) {
  if (capacity > 0) mapping_.emplace(capacity, Mapping::Kind::anonymous);
}

std::optional<ValuePool::Slot> ValuePool::allocate(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto piece = space_.allocate(size);
  if (!piece) return std::nullopt;
  used_ += size;
  return Slot{mapping_->data() + piece->offset, size, piece->node};
}

void ValuePool::release(const Slot& slot) noexcept {
  const std::lock_guard lock(mutex_);
  space_.release(slot.node);
  used_ -= slot.size;
}

ValuePool::Usage ValuePool::usage() const {
  const std::lock_guard lock(mutex_);
  return Usage{space_.capacity(), used_, space_.occupied()};
}

}  // namespace mooncake_kv
