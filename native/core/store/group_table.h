#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/object.h"

namespace mooncake_kv {

class Group;

/// That an object is a member of a group. It is linked to the others, so it must stay where it is.
struct Membership {
  enum class Going : std::uint8_t { no, unless_pinned, unless_hard_pinned };

  std::shared_ptr<Group> group;
  Object* object = nullptr;
  /// How often the lease of the group had been granted when the object came: it shares only in what was granted since.
  std::uint64_t joined = 0;

  // What follows is guarded by the lock of the table.
  Membership* earlier = nullptr;
  Membership* later = nullptr;
  /// The group is being evicted: the object counts as gone, but for the pins that this names.
  Going going = Going::no;
};

/// The objects that were put with one group name, which share one lease: who reads one of them protects all. A member that
/// came after the lease was granted has no share, and no lease, until somebody reads any of them again.
class Group {
 public:
  explicit Group(std::string_view name) : name_(name) {}
  const std::string& name() const { return name_; }

  bool shares_lease(const Membership& member) const { return member.joined < grants_.load(std::memory_order_acquire); }
  /// When the lease of the member ends; 0 without one.
  std::int64_t lease_of(const Membership& member) const {
    return shares_lease(member) ? lease_until_.load(std::memory_order_acquire) : 0;
  }

 private:
  friend class GroupTable;

  const std::string name_;
  std::atomic<std::int64_t> lease_until_{0};
  std::atomic<std::uint64_t> grants_{0};
  /// A member has come since the lease was granted.
  std::atomic<bool> has_newcomer_{false};

  // What follows is guarded by the lock of the table.
  Membership* members_ = nullptr;
  std::size_t count_ = 0;
  std::size_t sharing_ = 0;  // members that share the lease
  /// Of the members that wait for the end of the others' lease, the first in the order of eviction.
  std::int64_t waiting_since_ = INT64_MAX;
  std::list<std::shared_ptr<Group>>::iterator place_;
};

/// The groups of a store. Their members lie in all shards of the object table, so groups have a lock of their own. It is
/// taken under the lock of a shard, never the other way round. Memberships belong to the shard of their object, whose lock
/// the callers of whatever takes one hold.
///
/// A member that shares the lease does not stand in the order of eviction: its group does, once the lease has ended.
class GroupTable {
 public:
  /// Makes the object a member, without a share in the lease. May throw std::bad_alloc, and then does not.
  void join(Membership& member, Object* object, std::string_view name);
  void leave(Membership& member) noexcept;
  /// Another object takes the place of a member, without a share in the lease.
  void replace(Membership& member, Object* object) noexcept;
  /// Gives a member back a share that it had, unless that lease is no more.
  void restore_share(Membership& member, std::int64_t lease_until) noexcept;
  /// The object is written. Whether it shares a lease that has not ended; a share in another one is over.
  bool completed(Membership& member, std::int64_t now) noexcept;

  /// Somebody reads the member: all get a lease of `ttl`, unless more than half of it is left and nobody new is among them.
  /// False for a member that is being evicted: it is gone.
  bool read(Membership& member, std::int64_t now, std::int64_t ttl) noexcept;

  /// Whether a member without a share must wait for the end of the others' lease. Its group stands for it from then on.
  bool waits(const Membership& member, std::int64_t now) noexcept;

  struct Due {
    std::int64_t rank;  // in the order of eviction
    std::shared_ptr<Group> group;
  };
  /// The groups whose lease has ended and that stand for members.
  std::vector<Due> due(std::int64_t now) const;
  /// When the next lease of a group ends; INT64_MAX when none is ahead.
  std::int64_t next_lease_end(std::int64_t now) const noexcept;
  std::vector<ObjectRef> members(const Group& group) const;
  /// All members of a group without a lease, which count as gone from now on; nothing for one with a lease. `soft`: also
  /// those with a soft pin.
  std::vector<ObjectRef> begin_eviction(Group& group, bool soft, std::int64_t now);
  bool is_going(const Membership& member) const noexcept;
  /// Whoever is still a member stays.
  void end_eviction(Group& group) noexcept;

 private:
  using Groups = std::list<std::shared_ptr<Group>>;

  static std::vector<ObjectRef> objects_of(const Group& group);
  static void end_share(Group& group, Membership& member) noexcept;
  Groups& list_of(const Group& group) { return group.grants_.load() > 0 ? granted_ : never_granted_; }

  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, Groups::iterator> by_name_;
  Groups never_granted_;
  Groups granted_;  // by the end of the lease
};

}  // namespace mooncake_kv
