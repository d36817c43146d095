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
  if (!group.empty()) {
    shard.groups.emplace(object.get(), group);
    object->grouped = true;
  }
  try {
    shard.index.insert(object);
  } catch (...) {
    shard.groups.erase(object.get());
    throw;
  }
  count_.fetch_add(1, std::memory_order_relaxed);
}

ObjectRef ObjectTable::take_out(Shard& shard, Object* object) noexcept {
  shard.order.remove(object);
  if (object->grouped) shard.groups.erase(object);
  count_.fetch_sub(1, std::memory_order_relaxed);
  return shard.index.erase(object);
}

/// Puts a fresh, unfinished object in the place of an old one. A complete old one, or the one that an unfinished old
/// one was to replace, waits for the end of the write; an unfinished old one is parked.
void ObjectTable::replace(Shard& shard, Object* old, const ObjectRef& fresh, std::int64_t now) {
  auto node = shard.previous.extract(old);
  if (node.empty() && old->complete) {
    // The node is made first, so that nothing below can fail.
    shard.previous.emplace(fresh.get(), ObjectRef(old));
  } else if (!node.empty()) {
    node.key() = fresh.get();
    shard.previous.insert(std::move(node));
  }
  if (old->grouped) {
    auto group = shard.groups.extract(old);
    group.key() = fresh.get();
    shard.groups.insert(std::move(group));
    fresh->grouped = true;
    old->grouped = false;
  }
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
  if (old) replace(shard, old, fresh, now);
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
  replace(shard, old, fresh, now);
  return {Outcome::created, {std::move(fresh)}};
}

bool ObjectTable::other_group(const Shard& shard, const Object* object, const Keeping& keeping) const {
  if (!keeping.regroups) return false;
  const auto found = shard.groups.find(object);
  return (found == shard.groups.end() ? std::string_view() : std::string_view(found->second)) != keeping.group;
}

void ObjectTable::complete(Shard& shard, Object* object, std::int64_t now) noexcept {
  // Time, but no two alike: puts of one moment keep their order.
  std::int64_t latest = latest_order_.load(std::memory_order_relaxed);
  while (!latest_order_.compare_exchange_weak(latest, std::max(latest + 1, now), std::memory_order_relaxed)) {
  }
  object->order = std::max(latest + 1, now);
  object->complete = true;
  if (object->lease_until <= now) object->lease_until = 0;
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
    auto group = shard.groups.extract(object);
    group.key() = back.get();
    shard.groups.insert(std::move(group));
    back->grouped = true;
    object->grouped = false;
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
  object->lease_until = std::max(object->lease_until, now + timeouts_.lease);
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
  if (!force && object->lease_until > now) return code::object_has_lease;
  gone = take_out(shard, object);
  return code::ok;
}

std::uint64_t ObjectTable::remove_all(bool force, std::int64_t now) {
  std::uint64_t removed = 0;
  for (Shard& shard : shards_) {
    std::vector<Object*> victims;
    std::vector<ObjectRef> gone;
    const std::lock_guard lock(shard.mutex);
    victims.reserve(shard.index.size());
    gone.reserve(shard.index.size());
    shard.index.for_each([&](Object* object) {
      if (object->complete && (force || object->lease_until <= now)) victims.push_back(object);
    });
    for (Object* object : victims) gone.push_back(take_out(shard, object));
    removed += gone.size();
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
    if (!object->in_table || !object->complete || (!force && object->lease_until > now)) continue;
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
    shard.groups.clear();
    shard.previous.clear();
    shard.index.clear();
  }
}

}  // namespace mooncake_kv
