#include "store/eviction_order.h"

#include <algorithm>

namespace mooncake_kv {

void EvictionOrder::add(Object* object) noexcept {
  if (object->hard_pin) return;
  const bool read = object->lease_until != 0;
  Object::List list = read ? Object::List::read : Object::List::unread;
  if (object->soft_until != 0) {
    list = read ? Object::List::soft_read : Object::List::soft_unread;
    soft_ends_from_ = std::min(soft_ends_from_, object->soft_until);
  }
  link_before(nullptr, object, list);
}

void EvictionOrder::link_before(Object* next, Object* object, Object::List list) noexcept {
  Ends& all = ends(list);
  object->list = list;
  object->later = next;
  object->earlier = next ? next->earlier : all.last;
  (object->earlier ? object->earlier->later : all.first) = object;
  (next ? next->earlier : all.last) = object;
}

void EvictionOrder::remove(Object* object) noexcept {
  if (object->list == Object::List::none) return;
  Ends& all = ends(object->list);
  (object->earlier ? object->earlier->later : all.first) = object->later;
  (object->later ? object->later->earlier : all.last) = object->earlier;
  object->earlier = object->later = nullptr;
  object->list = Object::List::none;
}

Object* EvictionOrder::first(bool soft) const noexcept {
  Object* unread = ends(soft ? Object::List::soft_unread : Object::List::unread).first;
  Object* read = ends(soft ? Object::List::soft_read : Object::List::read).first;
  if (!unread || !read) return unread ? unread : read;
  return rank(*read) < rank(*unread) ? read : unread;
}

std::int64_t EvictionOrder::next_change(std::int64_t now) const noexcept {
  std::int64_t change = soft_ends_from_;
  for (const bool soft : {false, true})
    if (const Object* object = first(soft); object && object->lease_until > now) change = std::min(change, object->lease_until);
  return change;
}

void EvictionOrder::end_soft_pins(std::int64_t now) noexcept {
  if (soft_ends_from_ > now) return;
  soft_ends_from_ = INT64_MAX;
  end_soft_pins(Object::List::soft_unread, Object::List::unread, now);
  end_soft_pins(Object::List::soft_read, Object::List::read, now);
}

void EvictionOrder::end_soft_pins(Object::List soft, Object::List plain, std::int64_t now) noexcept {
  Object* place = ends(plain).first;  // both lists are sorted: it only moves on
  Object* object = ends(soft).first;
  while (object) {
    Object* next = object->later;
    if (object->soft_until > now) {
      soft_ends_from_ = std::min(soft_ends_from_, object->soft_until);
    } else {
      remove(object);
      object->soft_until = 0;
      while (place && rank(*place) <= rank(*object)) place = place->later;
      link_before(place, object, plain);
    }
    object = next;
  }
}

void EvictionOrder::clear() noexcept {
  for (Ends& all : lists_) {
    for (Object* object = all.first; object;) {
      Object* next = object->later;
      object->earlier = object->later = nullptr;
      object->list = Object::List::none;
      object = next;
    }
    all = {};
  }
  soft_ends_from_ = INT64_MAX;
}

}  // namespace mooncake_kv
