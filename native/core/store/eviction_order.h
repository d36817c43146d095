#pragma once

#include <cstdint>

#include "store/object.h"

namespace mooncake_kv {

/// The complete objects of a shard in the order in which eviction takes them: by the end of their lease, or by the end of
/// their put as long as nobody has read them. They stand in lists whose links lie in the objects: one for those never
/// read, which come in the order of their puts, and one for the others, which go to its end when they are read. Objects
/// with a soft pin have two lists of their own; a hard pin keeps out of all of them.
class EvictionOrder {
 public:
  /// Where an object stands among those of all shards; smaller goes first.
  static std::int64_t rank(const Object& object) {
    return object.lease_until != 0 ? object.lease_until : object.order;
  }

  /// Adds a complete object at the end of its list.
  void add(Object* object) noexcept;
  /// Takes an object out; one that stands nowhere is fine.
  void remove(Object* object) noexcept;
  /// After its lease has changed.
  void touch(Object* object) noexcept {
    remove(object);
    add(object);
  }
  /// The next victim, of the soft-pinned ones or of the others, or null. It may be under a lease still; then so are all
  /// that come after it.
  Object* first(bool soft) const noexcept;
  /// When the next victim, of either kind, loses its lease or a soft pin ends; INT64_MAX when neither is ahead.
  std::int64_t next_change(std::int64_t now) const noexcept;
  /// Moves objects whose soft pin has run out to the others.
  void end_soft_pins(std::int64_t now) noexcept;
  void clear() noexcept;

 private:
  struct Ends {
    Object* first = nullptr;
    Object* last = nullptr;
  };
  Ends& ends(Object::List list) { return lists_[static_cast<int>(list) - 1]; }
  const Ends& ends(Object::List list) const { return lists_[static_cast<int>(list) - 1]; }
  void link_before(Object* next, Object* object, Object::List list) noexcept;
  void end_soft_pins(Object::List soft, Object::List plain, std::int64_t now) noexcept;

  Ends lists_[4];
  std::int64_t soft_ends_from_ = INT64_MAX;  // no soft pin ends earlier
};

}  // namespace mooncake_kv
