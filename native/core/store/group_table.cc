#include "store/group_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mooncake_kv {

void GroupTable::join(Membership& member, Object* object, std::string_view name) {
  const std::lock_guard lock(mutex_);
  auto known = by_name_.find(name);
  if (known == by_name_.end()) {
    const auto place = never_granted_.insert(never_granted_.end(), std::make_shared<Group>(name));
    try {
      known = by_name_.emplace((*place)->name_, place).first;
    } catch (...) {
      never_granted_.erase(place);
      throw;
    }
    (*place)->place_ = place;
  }
  member.group = *known->second;
  Group& group = *member.group;
  member.object = object;
  member.joined = group.grants_;
  member.later = group.members_;
  if (member.later) member.later->earlier = &member;
  group.members_ = &member;
  group.count_++;
  group.has_newcomer_ = true;
}

void GroupTable::leave(Membership& member) noexcept {
  const std::shared_ptr<Group> kept = std::move(member.group);
  Group& group = *kept;
  const std::lock_guard lock(mutex_);
  end_share(group, member);
  (member.earlier ? member.earlier->later : group.members_) = member.later;
  if (member.later) member.later->earlier = member.earlier;
  member.earlier = member.later = nullptr;
  if (--group.count_ > 0) return;
  by_name_.erase(group.name_);
  list_of(group).erase(group.place_);
}

void GroupTable::end_share(Group& group, Membership& member) noexcept {
  if (group.shares_lease(member)) group.sharing_--;
  member.joined = group.grants_;
}

void GroupTable::replace(Membership& member, Object* object) noexcept {
  Group& group = *member.group;
  const std::lock_guard lock(mutex_);
  end_share(group, member);
  member.object = object;
  member.going = Membership::Going::no;
  group.has_newcomer_ = true;
}

void GroupTable::restore_share(Membership& member, std::int64_t lease_until) noexcept {
  Group& group = *member.group;
  const std::lock_guard lock(mutex_);
  if (group.shares_lease(member) || group.lease_until_ < lease_until) return;
  member.joined = 0;
  group.sharing_++;
}

bool GroupTable::completed(Membership& member, std::int64_t now) noexcept {
  Group& group = *member.group;
  const std::lock_guard lock(mutex_);
  member.going = Membership::Going::no;
  if (group.lease_of(member) > now) return true;
  end_share(group, member);
  return false;
}

bool GroupTable::read(Membership& member, std::int64_t now, std::int64_t ttl) noexcept {
  Group& group = *member.group;
  // A group with so long a lease is not being evicted.
  if (group.lease_of(member) > now + ttl / 2 && !group.has_newcomer_.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(mutex_);
  const bool pinned = member.object->hard_pin ||
                      (member.going == Membership::Going::unless_pinned && member.object->soft_until > now);
  if (member.going != Membership::Going::no && !pinned) return false;
  granted_.splice(granted_.end(), list_of(group), group.place_);
  group.lease_until_.store(std::max(group.lease_until_.load(), now + ttl), std::memory_order_release);
  group.grants_.fetch_add(1, std::memory_order_release);
  group.has_newcomer_.store(false, std::memory_order_release);
  group.sharing_ = group.count_;
  group.waiting_since_ = INT64_MAX;
  return true;
}

bool GroupTable::waits(const Membership& member, std::int64_t now) noexcept {
  Group& group = *member.group;
  const std::lock_guard lock(mutex_);
  if (group.sharing_ == 0 || group.lease_until_ <= now) return false;
  group.waiting_since_ = std::min(group.waiting_since_, member.object->order);
  return true;
}

std::vector<GroupTable::Due> GroupTable::due(std::int64_t now) const {
  std::vector<Due> due;
  const std::lock_guard lock(mutex_);
  for (const auto& group : granted_) {
    const std::int64_t lease_until = group->lease_until_;
    if (lease_until > now) break;
    if (group->sharing_ > 0 || group->waiting_since_ != INT64_MAX)
      due.push_back({std::min(lease_until, group->waiting_since_), group});
  }
  return due;
}

std::int64_t GroupTable::next_lease_end(std::int64_t now) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto next = std::ranges::find_if(granted_, [&](const auto& group) { return group->lease_until_ > now; });
  return next == granted_.end() ? INT64_MAX : (*next)->lease_until_.load();
}

std::vector<ObjectRef> GroupTable::objects_of(const Group& group) {
  std::vector<ObjectRef> objects;
  objects.reserve(group.count_);
  for (const Membership* member = group.members_; member; member = member->later) objects.emplace_back(member->object);
  return objects;
}

std::vector<ObjectRef> GroupTable::members(const Group& group) const {
  const std::lock_guard lock(mutex_);
  return objects_of(group);
}

std::vector<ObjectRef> GroupTable::begin_eviction(Group& group, bool soft, std::int64_t now) {
  const std::lock_guard lock(mutex_);
  if (group.sharing_ > 0 && group.lease_until_ > now) return {};
  std::vector<ObjectRef> objects = objects_of(group);
  for (Membership* member = group.members_; member; member = member->later)
    member->going = soft ? Membership::Going::unless_hard_pinned : Membership::Going::unless_pinned;
  return objects;
}

bool GroupTable::is_going(const Membership& member) const noexcept {
  const std::lock_guard lock(mutex_);
  return member.going != Membership::Going::no;
}

void GroupTable::end_eviction(Group& group) noexcept {
  const std::lock_guard lock(mutex_);
  for (Membership* member = group.members_; member; member = member->later) member->going = Membership::Going::no;
}

}  // namespace mooncake_kv
