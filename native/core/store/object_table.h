#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "deadline.h"
#include "store/eviction_order.h"
#include "store/group_table.h"
#include "store/key_index.h"
#include "store/object.h"
#include "store/parked_objects.h"

namespace mooncake_kv {

/// A write under way: the object is in the table, unfinished, until finish() or revoke().
struct Writing {
  ObjectRef object;
  /// The bytes of an object are overwritten where they are. Such a write must not be revoked once it has begun.
  bool in_place = false;
};

/// The objects of a store: what calls, leases, timeouts and eviction do to them, but not their bytes. In shards with a
/// lock each. Any bytes are a key. Thread-safe. Times are those of the store's clock.
class ObjectTable {
 public:
  struct Timeouts {
    std::int64_t lease;
    std::int64_t discard;
  };
  /// How an object is kept.
  struct Keeping {
    bool hard_pin = false;
    std::int64_t soft_until = 0;
    std::string_view group;
    bool regroups = false;  // `group` counts, be it empty
  };
  enum class Outcome {
    /// The caller writes the object.
    created,
    /// There is one that must stay, or somebody writes it.
    exists,
    no_room,
    /// A reader is in it, and there is no room for a second copy.
    busy,
    /// It exists in another group.
    other_group,
  };
  struct Begun {
    Outcome outcome;
    Writing writing;  // when created
  };
  struct Found {
    std::int32_t code;  // 0, -704 or -703
    ObjectRef object;   // when 0
    std::int64_t lease_until = 0;
  };
  struct Evicted {
    std::uint64_t objects = 0;
    std::uint64_t bytes = 0;
  };

  ObjectTable(ValuePool& pool, ParkedObjects& parked, Timeouts timeouts)
      : pool_(pool), parked_(parked), timeouts_(timeouts) {}

  /// A key that exists stays as it is, and so does one that is being written, unless that takes longer than the
  /// timeout: then the new write takes over.
  Begun begin_put(std::string_view key, std::uint64_t size, const Keeping& keeping, std::int64_t now);
  /// Takes over whatever there is, at once. The old object comes back if the write is revoked.
  Begun begin_upsert(std::string_view key, std::uint64_t size, const Keeping& keeping, std::int64_t now);
  /// The object can be read from now on: 0. -601 when another write has taken the key over.
  std::int32_t finish(const Writing& writing, std::int64_t now) noexcept;
  /// Takes the write back: 0 or -601 as above.
  std::int32_t revoke(const Writing& writing, std::int64_t now) noexcept;

  /// Finds an object for a reader, and protects it by a lease.
  Found read(std::string_view key, std::int64_t now);
  /// 0; -704; -703 for an unfinished object; -706 for one under a lease, unless forced.
  std::int32_t remove(std::string_view key, bool force, std::int64_t now);
  struct Removed {
    std::uint64_t objects = 0;
    bool late = false;
  };
  /// Removes all complete objects, of which leased ones only if forced. Looks at the deadline between two shards; what is
  /// removed by then stays so.
  Removed remove_all(bool force, std::int64_t now, const Deadline& deadline);
  /// The same for those whose key `matches`. No lock is held while it decides; what it throws goes through, with nothing
  /// removed.
  std::uint64_t remove_matching(const std::function<bool(std::string_view)>& matches, bool force, std::int64_t now);
  /// Removes the first `most` of the objects that no lease and no hard pin protects, in the order of EvictionOrder; soft-
  /// pinned ones only where `soft`, and after all others. The group of each goes with it, so that it may become many more;
  /// or the object stays, and another one takes its turn, when a member is under a lease.
  Evicted evict(std::uint64_t most, bool soft, std::int64_t now);
  /// When eviction that finds nothing now may find something, if nobody does anything; INT64_MAX for never.
  std::int64_t next_change(std::int64_t now);

  void clear() noexcept;
  /// Objects, unfinished ones included.
  std::uint64_t size() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Shard {
    mutable std::mutex mutex;
    KeyIndex index;
    EvictionOrder order;
    /// What unfinished upserts replace.
    std::unordered_map<const Object*, ObjectRef> previous;
    std::unordered_map<const Object*, Membership> groups;
  };
  struct Place {
    Shard& shard;
    std::uint32_t hash;
  };
  static constexpr int shard_bits = 6;

  /// Eviction under way.
  struct Round {
    const bool soft;
    const std::int64_t now;
    Evicted evicted{};
    /// Places in the order that have been passed, whether their objects went or not.
    std::uint64_t passed = 0;
    /// Those of objects that went with their group before it was their turn; the smallest on top.
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> ahead{};
  };

  /// The object can be read: it takes its place in the order of eviction.
  void complete(Shard& shard, Object* object, std::int64_t now) noexcept;
  Place place_of(std::string_view key);
  Shard& shard_of(const Object& object) { return place_of(object.key()).shard; }
  ObjectRef make(std::string_view key, std::uint64_t size, const Keeping& keeping, std::uint32_t hash, std::int64_t now);
  void insert(Shard& shard, const ObjectRef& object, std::string_view group);
  ObjectRef take_out(Shard& shard, Object* object) noexcept;
  void replace(Shard& shard, Object* old, const ObjectRef& fresh, const Keeping& keeping, std::int64_t now);
  static bool other_group(const Shard& shard, const Object* object, const Keeping& keeping);
  static std::int64_t lease_of(const Shard& shard, const Object* object);
  void join_group(Shard& shard, Object* object, std::string_view group);
  void leave_group(Shard& shard, Object* object) noexcept;
  void pass_group_on(Shard& shard, Object* from, Object* to) noexcept;

  Evicted evict_some(std::uint64_t most, bool soft_ones, std::int64_t now);
  Object* first_in(Shard& shard, const Round& round) noexcept;
  bool evictable(const Object& object, const Round& round) const;
  void evict_group(Group& group, bool by_itself, Round& round);

  ValuePool& pool_;
  ParkedObjects& parked_;
  const Timeouts timeouts_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::int64_t> latest_order_{0};
  GroupTable groups_;
  std::array<Shard, std::size_t{1} << shard_bits> shards_;
};

}  // namespace mooncake_kv
