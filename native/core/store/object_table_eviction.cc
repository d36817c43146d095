#include <algorithm>
#include <memory>
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

/// Merges the orders of all shards, and the groups that stand for members.
ObjectTable::Evicted ObjectTable::evict_some(std::uint64_t most, bool soft_ones, std::int64_t now) {
  struct Candidate {
    std::int64_t rank;
    std::size_t shard;
    std::shared_ptr<Group> group;  // or null, and the first of the shard is meant
    bool operator<(const Candidate& other) const { return other.rank < rank; }  // the smallest on top
  };
  Round round{soft_ones, now};
  std::priority_queue<Candidate> candidates;
  const auto push_first = [&](std::size_t shard) {
    if (const Object* first = first_in(shards_[shard], round)) candidates.push({EvictionOrder::rank(*first), shard, nullptr});
  };
  for (std::size_t i = 0; i < shards_.size(); i++) {
    const std::lock_guard lock(shards_[i].mutex);
    push_first(i);
  }
  for (GroupTable::Due& due : groups_.due(now)) candidates.push({due.rank, 0, std::move(due.group)});
  while (!candidates.empty()) {
    const Candidate candidate = candidates.top();
    candidates.pop();
    for (; !round.ahead.empty() && round.ahead.top() <= candidate.rank; round.ahead.pop()) round.passed++;
    if (round.passed >= most && round.evicted.objects >= most) break;
    if (candidate.group) {
      evict_group(*candidate.group, true, round);
      continue;
    }
    Shard& shard = shards_[candidate.shard];
    std::shared_ptr<Group> group;
    {
      ObjectRef gone;
      const std::lock_guard lock(shard.mutex);
      Object* first = first_in(shard, round);
      // The first of a shard may have changed since it was looked at; it can only have become a later one.
      if (first && EvictionOrder::rank(*first) <= candidate.rank) {
        if (first->lease_until > now) continue;  // and so are all behind it
        if (first->grouped) {
          group = shard.groups.at(first).group;
        } else {
          round.passed++;
          round.evicted.objects++;
          round.evicted.bytes += first->size();
          gone = take_out(shard, first);
        }
      }
      if (!group) push_first(candidate.shard);
    }
    if (!group) continue;
    evict_group(*group, false, round);
    const std::lock_guard lock(shard.mutex);
    push_first(candidate.shard);
  }
  return round.evicted;
}

std::int64_t ObjectTable::next_change(std::int64_t now) {
  std::int64_t change = groups_.next_lease_end(now);
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    change = std::min(change, shard.order.next_change(now));
  }
  for (const GroupTable::Due& due : groups_.due(now))
    for (const ObjectRef& object : groups_.members(*due.group)) {
      const std::lock_guard lock(shard_of(*object.get()).mutex);
      if (object->soft_until > now) change = std::min(change, object->soft_until);
    }
  return change;
}

/// The next victim of a shard. Members of a group that stands for them, or will, leave the order.
Object* ObjectTable::first_in(Shard& shard, const Round& round) noexcept {
  for (;;) {
    Object* first = shard.order.first(round.soft);
    if (!first || !first->grouped) return first;
    const Membership& member = shard.groups.at(first);
    if (!member.group->shares_lease(member) && !groups_.waits(member, round.now)) return first;
    shard.order.remove(first);
  }
}

/// Under the lock of its shard.
bool ObjectTable::evictable(const Object& object, const Round& round) const {
  return object.in_table && object.complete && !object.hard_pin && (round.soft || object.soft_until <= round.now);
}

/// Evicts the members of a group, unless one of them is under a lease. `by_itself`: only if it stands for a member that can go.
void ObjectTable::evict_group(Group& group, bool by_itself, Round& round) {
  const auto stands_for = [&](const ObjectRef& object) {
    Shard& shard = shard_of(*object.get());
    const std::lock_guard lock(shard.mutex);
    return evictable(*object.get(), round) && object->list == Object::List::none;
  };
  if (by_itself && !std::ranges::any_of(groups_.members(group), stands_for)) return;
  std::vector<std::int64_t> ranks;
  {
    const std::vector<ObjectRef> members = groups_.begin_eviction(group, round.soft, round.now);
    struct End {
      GroupTable& groups;
      Group& group;
      ~End() { groups.end_eviction(group); }
    } const end{groups_, group};
    ranks.reserve(members.size());
    for (const ObjectRef& object : members) {
      Shard& shard = shard_of(*object.get());
      ObjectRef gone;
      const std::lock_guard lock(shard.mutex);
      if (!evictable(*object.get(), round) || !object->grouped) continue;
      const Membership& member = shard.groups.at(object.get());
      if (!groups_.is_going(member)) continue;
      const std::int64_t lease_until = member.group->lease_of(member);
      ranks.push_back(lease_until != 0 ? lease_until : object->order);
      round.evicted.objects++;
      round.evicted.bytes += object->size();
      gone = take_out(shard, object.get());
    }
  }
  for (const std::int64_t rank : ranks) round.ahead.push(rank);
}

}  // namespace mooncake_kv
