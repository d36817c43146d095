#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "store/value_pool.h"

namespace mooncake_kv {

class ObjectRef;

/// One stored object: its key, its place in the pool and what decides its fate. Counted by reference, so that whoever
/// reads the bytes keeps them when the object leaves the table. The key lies right behind the object.
///
/// There is one of these a key, and a million keys are common: members are ordered to leave no gaps.
class Object {
 public:
  enum class List : std::uint8_t { none, unread, read, soft_unread, soft_read };

  /// The object takes over `slot`. May throw std::bad_alloc, and then does not.
  static ObjectRef make(ValuePool& pool, const ValuePool::Slot& slot, std::string_view key, std::uint32_t hash);

  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_size_}; }
  std::uint8_t* bytes() const { return bytes_; }
  std::uint64_t size() const { return size_; }
  std::uint32_t hash() const { return hash_; }

  /// Whether somebody besides the table holds the object; only meaningful under the lock of its shard, where nobody
  /// can begin to.
  bool shared() const { return references_.load(std::memory_order_acquire) > 1; }

  // What follows is guarded by the lock of the shard.
  Object* next_in_bucket = nullptr;
  Object* earlier = nullptr;  // in the list that `list` names
  Object* later = nullptr;
  std::int64_t lease_until = 0;  // 0: not read since it was put
  std::int64_t soft_until = 0;   // 0: no soft pin
  /// Complete: when its put ended, unique among all objects. Unfinished: when it began.
  std::int64_t order = 0;
  bool complete = false;
  bool in_table = false;
  bool hard_pin = false;
  bool grouped = false;  // its shard knows the group
  List list = List::none;

 private:
  friend class ObjectRef;

  Object(ValuePool& pool, const ValuePool::Slot& slot, std::uint32_t key_size, std::uint32_t hash)
      : node_(slot.node), hash_(hash), key_size_(key_size), pool_(pool), bytes_(slot.bytes), size_(slot.size) {}
  ~Object() = default;
  static void destroy(Object* object) noexcept;

  const std::uint32_t node_;
  const std::uint32_t hash_;
  const std::uint32_t key_size_;
  std::atomic<std::uint32_t> references_{0};
  ValuePool& pool_;
  std::uint8_t* const bytes_;
  const std::uint64_t size_;
};

/// A counted reference to an object, or nothing.
class ObjectRef {
 public:
  ObjectRef() = default;
  explicit ObjectRef(Object* object) : object_(object) { acquire(); }
  ObjectRef(const ObjectRef& other) : object_(other.object_) { acquire(); }
  ObjectRef(ObjectRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ObjectRef& operator=(ObjectRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ObjectRef() {
    if (object_ && object_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) Object::destroy(object_);
  }

  /// Takes over a reference that was given away by release().
  static ObjectRef adopt(Object* object) noexcept {
    ObjectRef reference;
    reference.object_ = object;
    return reference;
  }
  /// Gives the reference away, uncounted.
  Object* release() noexcept { return std::exchange(object_, nullptr); }

  Object* get() const { return object_; }
  Object* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void acquire() {
    if (object_) object_->references_.fetch_add(1, std::memory_order_relaxed);
  }

  Object* object_ = nullptr;
};

}  // namespace mooncake_kv
