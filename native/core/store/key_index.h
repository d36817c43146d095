#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "store/object.h"

namespace mooncake_kv {

/// Objects by key: a hash table whose links lie in the objects. It holds one reference to each. Not thread-safe.
class KeyIndex {
 public:
  KeyIndex() = default;
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;
  ~KeyIndex() { clear(); }

  Object* find(std::string_view key, std::uint32_t hash) const;
  /// The key must be absent. May throw std::bad_alloc, and then does nothing.
  void insert(ObjectRef object);
  /// The object must be here.
  ObjectRef erase(Object* object) noexcept;
  void clear() noexcept;

  std::size_t size() const { return size_; }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (Object* object : buckets_)
      while (object) {
        Object* next = object->next_in_bucket;
        visit(object);
        object = next;
      }
  }

 private:
  void grow();
  Object*& bucket_of(std::uint32_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  std::vector<Object*> buckets_;  // none, or a power of two
  std::size_t size_ = 0;
};

}  // namespace mooncake_kv
