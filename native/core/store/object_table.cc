#include "store/object_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "codes.h"

namespace mooncake_kv {

ObjectTable::Place ObjectTable::place_of(std::string_view key) {
  const std::uint64_t hash = std::hash<std::string_view>{}(key);
  // The top bits choose the shard: the index inside it uses the low ones.
  return {shards_[hash >> (std::numeric_limits<std::size_t>::digits - shard_bits)], static_cast<std::uint32_t>(hash)};
}

/// Nothing when there is no room.
ObjectRef ObjectTable::make(std::string_view key, std::uint64_t size, const Keeping& keeping, std::uint32_t hash,
                            std::int64_t now) {
  const auto slot = pool_.allocate(size);
  if (!slot) return {};
  ObjectRef object;
  try {
    object = Object::make(pool_, *slot, key, hash);
  } catch (...) {
    pool_.release(*slot);
    throw;
  }
  object->order = now;
  object->hard_pin = keeping.hard_pin;
  object->soft_until = keeping.soft_until;
  return object;
}

void ObjectTable::insert(Shard& shard, const ObjectRef& object, std::string_view group) {
  join_group(shard, object.get(), group);
  try {
    shard.index.insert(object);
  } catch (...) {
    leave_group(shard, object.get());
    throw;
  }
  count_.fetch_add(1, std::memory_order_relaxed);
}

ObjectRef ObjectTable::take_out(Shard& shard, Object* object) noexcept {
  shard.order.remove(object);
  leave_group(shard, object);
  count_.fetch_sub(1, std::memory_order_relaxed);
  return shard.index.erase(object);
}

/// Puts a fresh, unfinished object in the place of an old one. A complete old one, or the one that an unfinished old
/// one was to replace, waits for the end of the write, and keeps the key in its group; else the old one is parked, and
/// with it goes its group.
void ObjectTable::replace(Shard& shard, Object* old, const ObjectRef& fresh, const Keeping& keeping, std::int64_t now) {
  const bool had_previous = shard.previous.contains(old);
  // What can fail comes first.
  if (old->complete) shard.previous.emplace(fresh.get(), ObjectRef(old));
  else if (!had_previous) join_group(shard, fresh.get(), keeping.group);
  if (had_previous) {
    auto node = shard.previous.extract(old);
    node.key() = fresh.get();
    shard.previous.insert(std::move(node));
  }
  if (old->complete || had_previous) pass_group_on(shard, old, fresh.get());
  else leave_group(shard, old);
  const bool complete = old->complete;
  shard.order.remove(old);
  ObjectRef replaced = shard.index.erase(old);
  shard.index.insert(fresh);
  if (!complete) parked_.park(std::move(replaced), now);
}

ObjectTable::Begun ObjectTable::begin_put(std::string_view key, std::uint64_t size, const Keeping& keeping,
                                          std::int64_t now) {
  const auto [shard, hash] = place_of(key);
  const std::lock_guard lock(shard.mutex);
  Object* old = shard.index.find(key, hash);
  if (old && (old->complete || now - old->order < timeouts_.discard)) return {Outcome::exists, {}};
  ObjectRef fresh = make(key, size, keeping, hash, now);
  if (!fresh) return {Outcome::no_room, {}};
  if (old) replace(shard, old, fresh, keeping, now);
  else insert(shard, fresh, keeping.group);
  return {Outcome::created, {std::move(fresh)}};
}

ObjectTable::Begun ObjectTable::begin_upsert(std::string_view key, std::uint64_t size, const Keeping& keeping,
                                             std::int64_t now) {
  const auto [shard, hash] = place_of(key);
  const std::lock_guard lock(shard.mutex);
  Object* old = shard.index.find(key, hash);
  if (!old) {
    ObjectRef fresh = make(key, size, keeping, hash, now);
    if (!fresh) return {Outcome::no_room, {}};
    insert(shard, fresh, keeping.group);
    return {Outcome::created, {std::move(fresh)}};
  }
  if (other_group(shard, old, keeping)) return {Outcome::other_group, {}};
  // Pins outlive the bytes; a lease does so only where their place stays the same.
  Keeping kept = keeping;
  kept.hard_pin |= old->hard_pin;
  if (kept.soft_until == 0) kept.soft_until = old->soft_until;
  const bool same_size = old->complete && old->size() == size;
  if (same_size && !old->shared()) {
    shard.order.remove(old);
    old->complete = false;
    old->order = now;
    old->hard_pin = kept.hard_pin;
    old->soft_until = kept.soft_until;
    return {Outcome::created, {ObjectRef(old), true}};
  }
  ObjectRef fresh = make(key, size, kept, hash, now);
  if (!fresh) return {same_size ? Outcome::busy : Outcome::no_room, {}};
  replace(shard, old, fresh, kept, now);
  return {Outcome::created, {std::move(fresh)}};
}

bool ObjectTable::other_group(const Shard& shard, const Object* object, const Keeping& keeping) {
  if (!keeping.regroups) return false;
  return (object->grouped ? std::string_view(shard.groups.at(object).group->name()) : std::string_view()) != keeping.group;
}

std::int64_t ObjectTable::lease_of(const Shard& shard, const Object* object) {
  if (!object->grouped) return object->lease_until;
  const Membership& member = shard.groups.at(object);
  return member.group->lease_of(member);
}

/// Nothing happens for an empty name.
void ObjectTable::join_group(Shard& shard, Object* object, std::string_view group) {
  if (group.empty()) return;
  Membership& member = shard.groups[object];
  try {
    groups_.join(member, object, group);
  } catch (...) {
    shard.groups.erase(object);
    throw;
  }
  object->grouped = true;
}

void ObjectTable::leave_group(Shard& shard, Object* object) noexcept {
  if (!object->grouped) return;
  const auto member = shard.groups.find(object);
  groups_.leave(member->second);
  shard.groups.erase(member);
  object->grouped = false;
}

/// The lease that `from` had stays written in it, for the case that it comes back.
void ObjectTable::pass_group_on(Shard& shard, Object* from, Object* to) noexcept {
  if (!from->grouped) return;
  from->lease_until = lease_of(shard, from);
  auto node = shard.groups.extract(from);
  node.key() = to;
  Membership& member = shard.groups.insert(std::move(node)).position->second;
  groups_.replace(member, to);
  to->grouped = true;
  from->grouped = false;
}

void ObjectTable::complete(Shard& shard, Object* object, std::int64_t now) noexcept {
  // Time, but no two alike: puts of one moment keep their order.
  std::int64_t latest = latest_order_.load(std::memory_order_relaxed);
  while (!latest_order_.compare_exchange_weak(latest, std::max(latest + 1, now), std::memory_order_relaxed)) {
  }
  object->order = std::max(latest + 1, now);
  object->complete = true;
  if (object->grouped) {
    if (groups_.completed(shard.groups.at(object), now)) return;
  } else if (object->lease_until <= now) {
    object->lease_until = 0;
  }
  shard.order.add(object);
}

std::int32_t ObjectTable::finish(const Writing& writing, std::int64_t now) noexcept {
  Object* object = writing.object.get();
  Shard& shard = shard_of(*object);
  const std::lock_guard lock(shard.mutex);
  if (!object->in_table) return code::illegal_client;
  complete(shard, object, now);
  auto previous = shard.previous.extract(object);
  if (!previous.empty()) parked_.park(std::move(previous.mapped()), now);
  return code::ok;
}

std::int32_t ObjectTable::revoke(const Writing& writing, std::int64_t now) noexcept {
  ObjectRef gone;
  Object* object = writing.object.get();
  Shard& shard = shard_of(*object);
  const std::lock_guard lock(shard.mutex);
  if (!object->in_table) return code::illegal_client;
  if (writing.in_place) {
    complete(shard, object, now);
    return code::ok;
  }
  auto previous = shard.previous.extract(object);
  if (previous.empty()) {
    gone = take_out(shard, object);
    return code::ok;
  }
  const ObjectRef back = std::move(previous.mapped());
  if (object->grouped) {
    const std::int64_t lease_until = std::exchange(back->lease_until, 0);
    pass_group_on(shard, object, back.get());
    if (lease_until > now) groups_.restore_share(shard.groups.at(back.get()), lease_until);
  }
  gone = shard.index.erase(object);
  shard.index.insert(back);
  complete(shard, back.get(), now);
  return code::ok;
}

ObjectTable::Found ObjectTable::read(std::string_view key, std::int64_t now) {
  const auto [shard, hash] = place_of(key);
  const std::lock_guard lock(shard.mutex);
  Object* object = shard.index.find(key, hash);
  if (!object) return {code::object_not_found, {}};
  if (!object->complete) return {code::replica_is_not_ready, {}};
  const std::int64_t lease_until = now + timeouts_.lease;
  if (object->grouped) {
    if (!groups_.read(shard.groups.at(object), now, timeouts_.lease)) return {code::object_not_found, {}};
    // What is left may be less than that, but the bytes stay for as long as the reader has them.
    return {code::ok, ObjectRef(object), lease_until};
  }
  object->lease_until = std::max(object->lease_until, lease_until);
  shard.order.touch(object);
  return {code::ok, ObjectRef(object), object->lease_until};
}

std::int32_t ObjectTable::remove(std::string_view key, bool force, std::int64_t now) {
  ObjectRef gone;  // outlives the lock: giving memory back takes another one
  const auto [shard, hash] = place_of(key);
  const std::lock_guard lock(shard.mutex);
  Object* object = shard.index.find(key, hash);
  if (!object) return code::object_not_found;
  if (!object->complete) return code::replica_is_not_ready;
  if (!force && lease_of(shard, object) > now) return code::object_has_lease;
  gone = take_out(shard, object);
  return code::ok;
}

ObjectTable::Removed ObjectTable::remove_all(bool force, std::int64_t now, const Deadline& deadline) {
  Removed removed;
  for (Shard& shard : shards_) {
    if (deadline.over()) {
      removed.late = true;
      break;
    }
    std::vector<Object*> victims;
    std::vector<ObjectRef> gone;
    const std::lock_guard lock(shard.mutex);
    victims.reserve(shard.index.size());
    gone.reserve(shard.index.size());
    shard.index.for_each([&](Object* object) {
      if (object->complete && (force || lease_of(shard, object) <= now)) victims.push_back(object);
    });
    for (Object* object : victims) gone.push_back(take_out(shard, object));
    removed.objects += gone.size();
  }
  return removed;
}

std::uint64_t ObjectTable::remove_matching(const std::function<bool(std::string_view)>& matches, bool force,
                                           std::int64_t now) {
  std::vector<ObjectRef> matching;
  for (Shard& shard : shards_) {
    std::vector<ObjectRef> objects;
    {
      const std::lock_guard lock(shard.mutex);
      objects.reserve(shard.index.size());
      shard.index.for_each([&](Object* object) {
        if (object->complete) objects.emplace_back(object);
      });
    }
    for (ObjectRef& object : objects)
      if (matches(object->key())) matching.push_back(std::move(object));
  }
  std::uint64_t removed = 0;
  for (const ObjectRef& object : matching) {
    Shard& shard = shard_of(*object.get());
    ObjectRef gone;
    const std::lock_guard lock(shard.mutex);
    // It may have gone, or be written again, since it was looked at.
    if (!object->in_table || !object->complete || (!force && lease_of(shard, object.get()) > now)) continue;
    gone = take_out(shard, object.get());
    removed++;
  }
  return removed;
}

void ObjectTable::clear() noexcept {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    count_.fetch_sub(shard.index.size(), std::memory_order_relaxed);
    shard.order.clear();
    for (auto& [object, member] : shard.groups) groups_.leave(member);
    shard.groups.clear();
    shard.previous.clear();
    shard.index.clear();
  }
}

}  // namespace mooncake_kv
