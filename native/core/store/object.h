#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "store/value_pool.h"

namespace mooncake_kv {

class ObjectRef;

/// One stored object: its key, its place in the pool and how far its put has come. Counted by reference, so that a
/// remove leaves the bytes to the calls that still read them. The key lies right behind the object.
class Object {
 public:
  /// The object takes over `slot`. May throw std::bad_alloc, and then does not.
  static ObjectRef make(ValuePool& pool, const ValuePool::Slot& slot, std::string_view key);

  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_size_}; }
  std::uint8_t* bytes() const { return slot_.bytes; }
  std::uint64_t size() const { return slot_.size; }

  /// False while the put that made the object still copies.
  bool complete() const { return complete_.load(std::memory_order_acquire); }
  void set_complete() { complete_.store(true, std::memory_order_release); }

 private:
  friend class ObjectRef;

  Object(ValuePool& pool, const ValuePool::Slot& slot, std::size_t key_size)
      : pool_(pool), slot_(slot), key_size_(key_size) {}
  ~Object() = default;
  static void destroy(Object* object) noexcept;

  ValuePool& pool_;
  const ValuePool::Slot slot_;
  const std::size_t key_size_;
  std::atomic<std::uint32_t> references_{0};
  std::atomic<bool> complete_{false};
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
