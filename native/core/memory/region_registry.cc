#include "memory/region_registry.h"

#include <iterator>
#include <limits>
#include <utility>

#include "codes.h"

namespace mooncake_kv {

std::int32_t RegionRegistry::add(std::uint64_t address, std::uint64_t size, std::shared_ptr<const void> owner) {
  if (address == 0 || size == 0) return code::invalid_params;
  if (size - 1 > std::numeric_limits<std::uint64_t>::max() - address) return code::invalid_params;
  const std::uint64_t last = address + (size - 1);
  const std::lock_guard lock(mutex_);
  const auto next = regions_.upper_bound(last);  // the first region that starts behind the new one
  if (next != regions_.begin() && std::prev(next)->second->last >= address) return code::invalid_params;
  regions_.emplace_hint(next, address, std::make_shared<Region>(Region{address, last, std::move(owner)}));
  return code::ok;
}

std::int32_t RegionRegistry::remove(std::uint64_t address) {
  std::unique_lock lock(mutex_);
  const auto found = regions_.find(address);
  if (found == regions_.end()) return code::invalid_params;
  const std::shared_ptr<Region> region = found->second;
  regions_.erase(found);
  unused_.wait(lock, [&] { return region->users == 0; });
  return code::ok;
}

std::shared_ptr<Region> RegionRegistry::find_and_use(std::uint64_t address, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  auto next = regions_.upper_bound(address);
  if (next == regions_.begin()) return nullptr;
  const std::shared_ptr<Region>& region = std::prev(next)->second;
  if (!region->covers(address, size)) return nullptr;
  region->users++;
  return region;
}

bool RegionRegistry::Guard::covers(std::uint64_t address, std::uint64_t size) {
  // The segments of an object walk over the regions in a fixed order: try the latest, then the one after it.
  const std::size_t count = held_.size();
  for (std::size_t step = 0; step < count; step++) {
    const std::size_t at = (last_ + step) % count;
    if (!held_[at]->covers(address, size)) continue;
    last_ = at;
    return true;
  }
  if (count == held_.capacity()) held_.reserve(count < 8 ? 8 : count * 2);  // now, so that push_back can't fail
  std::shared_ptr<Region> region = registry_.find_and_use(address, size);
  if (!region) return false;
  held_.push_back(std::move(region));
  last_ = count;
  return true;
}

RegionRegistry::Guard::~Guard() {
  if (held_.empty()) return;
  {
    const std::lock_guard lock(registry_.mutex_);
    for (const auto& region : held_) region->users--;
  }
  registry_.unused_.notify_all();
}

}  // namespace mooncake_kv
