#include "store/object_table.h"

#include "codes.h"

namespace mooncake_kv {

ObjectTable::Inserted ObjectTable::insert(std::string_view key, std::uint64_t size) {
  const HashedKey wanted = hashed(key);
  Shard& shard = shard_of(wanted);
  const std::lock_guard lock(shard.mutex);
  if (shard.objects.contains(wanted)) return {Outcome::exists, {}};
  const auto slot = pool_.allocate(size);
  if (!slot) return {Outcome::no_room, {}};
  ObjectRef object;
  try {
    object = Object::make(pool_, *slot, key);
  } catch (...) {
    pool_.release(*slot);
    throw;
  }
  shard.objects.emplace(HashedKey{object->key(), wanted.hash}, object);
  return {Outcome::created, std::move(object)};
}

ObjectRef ObjectTable::find(std::string_view key) const {
  const HashedKey wanted = hashed(key);
  const Shard& shard = shard_of(wanted);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.objects.find(wanted);
  return found == shard.objects.end() ? ObjectRef() : found->second;
}

std::int32_t ObjectTable::remove(std::string_view key) {
  ObjectRef removed;  // outlives the lock: giving memory back takes another one
  const HashedKey wanted = hashed(key);
  Shard& shard = shard_of(wanted);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.objects.find(wanted);
  if (found == shard.objects.end()) return code::object_not_found;
  if (!found->second->complete()) return code::replica_is_not_ready;
  removed = std::move(found->second);
  shard.objects.erase(found);
  return code::ok;
}

void ObjectTable::revoke(const ObjectRef& object) noexcept {
  const HashedKey wanted = hashed(object->key());
  Shard& shard = shard_of(wanted);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.objects.find(wanted);
  if (found != shard.objects.end() && found->second.get() == object.get()) shard.objects.erase(found);
}

void ObjectTable::clear() noexcept {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    shard.objects.clear();
  }
}

std::uint64_t ObjectTable::size() const {
  std::uint64_t count = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    count += shard.objects.size();
  }
  return count;
}

}  // namespace mooncake_kv
