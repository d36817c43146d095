#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "store/object_table.h"

namespace mooncake_kv {

ObjectTable::Evicted ObjectTable::evict(std::uint64_t most, bool soft, std::int64_t now) {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    shard.order.end_soft_pins(now);
  }
  Evicted evicted = evict_some(most, false, now);
  if (soft && evicted.objects < most) {
    const Evicted more = evict_some(most - evicted.objects, true, now);
    evicted.objects += more.objects;
    evicted.bytes += more.bytes;
  }
  return evicted;
}

/// Merges the orders of all shards.
ObjectTable::Evicted ObjectTable::evict_some(std::uint64_t most, bool soft_ones, std::int64_t now) {
  struct Candidate {
    std::int64_t rank;
    std::size_t shard;
    bool operator<(const Candidate& other) const { return other.rank < rank; }  // the smallest on top
  };
  std::priority_queue<Candidate> candidates;
  for (std::size_t i = 0; i < shards_.size(); i++) {
    const std::lock_guard lock(shards_[i].mutex);
    if (const Object* first = shards_[i].order.first(soft_ones)) candidates.push({EvictionOrder::rank(*first), i});
  }
  Evicted evicted;
  while (evicted.objects < most && !candidates.empty()) {
    const Candidate candidate = candidates.top();
    candidates.pop();
    Shard& shard = shards_[candidate.shard];
    ObjectRef gone;
    const std::lock_guard lock(shard.mutex);
    Object* first = shard.order.first(soft_ones);
    // The first of a shard may have changed since it was looked at; it can only have become a later one.
    if (first && EvictionOrder::rank(*first) <= candidate.rank) {
      if (first->lease_until > now) continue;  // and so are all behind it
      evicted.objects++;
      evicted.bytes += first->size();
      gone = take_out(shard, first);
      first = shard.order.first(soft_ones);
    }
    if (first) candidates.push({EvictionOrder::rank(*first), candidate.shard});
  }
  return evicted;
}

}  // namespace mooncake_kv
