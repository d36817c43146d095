#include "store/key_index.h"

#include <utility>

namespace mooncake_kv {

Object* KeyIndex::find(std::string_view key, std::uint32_t hash) const {
  if (buckets_.empty()) return nullptr;
  Object* object = buckets_[hash & (buckets_.size() - 1)];
  while (object && (object->hash() != hash || object->key() != key)) object = object->next_in_bucket;
  return object;
}

void KeyIndex::insert(ObjectRef object) {
  if (size_ == buckets_.size()) grow();
  Object*& bucket = bucket_of(object->hash());
  object->next_in_bucket = bucket;
  object->in_table = true;
  bucket = object.release();
  size_++;
}

ObjectRef KeyIndex::erase(Object* object) noexcept {
  Object** link = &bucket_of(object->hash());
  while (*link != object) link = &(*link)->next_in_bucket;
  *link = object->next_in_bucket;
  object->next_in_bucket = nullptr;
  object->in_table = false;
  size_--;
  return ObjectRef::adopt(object);
}

void KeyIndex::clear() noexcept {
  for (Object*& bucket : buckets_)
    while (bucket) {
      Object* object = std::exchange(bucket, bucket->next_in_bucket);
      object->next_in_bucket = nullptr;
      object->in_table = false;
      (void)ObjectRef::adopt(object);
    }
  size_ = 0;
}

void KeyIndex::grow() {
  std::vector<Object*> wider(buckets_.empty() ? 16 : buckets_.size() * 2);
  for (Object* object : buckets_)
    while (object) {
      Object*& bucket = wider[object->hash() & (wider.size() - 1)];
      Object* next = std::exchange(object->next_in_bucket, bucket);
      bucket = object;
      object = next;
    }
  buckets_ = std::move(wider);
}

}  // namespace mooncake_kv
