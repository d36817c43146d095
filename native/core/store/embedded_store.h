#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "deadline.h"
#include "store/batch.h"
#include "store/options.h"

namespace mooncake_kv {

struct StoreStats {
  std::uint64_t keys;
  std::uint64_t capacity;
  /// Sum of the object sizes, as Mooncake reports it.
  std::uint64_t used;
  /// The same with allocation rounding: what decides whether another object fits.
  std::uint64_t occupied;
  // Counts since the store was opened.
  std::uint64_t hits;
  std::uint64_t misses;
  std::uint64_t stored;
  std::uint64_t removed;
  std::uint64_t evicted;
  std::uint64_t evicted_bytes;
  std::uint64_t refusals;
};

/// What the segments of a call may point to.
enum class Access {
  /// The registered regions; -600 for anything else.
  registered,
  /// Memory that the caller vouches for.
  trusted,
  /// Anything: -800 for what is not there. Slower, and works on any address.
  any,
};

struct CallOptions {
  Access access = Access::registered;
  /// Whether the destination of a read may be larger than the object.
  bool larger_fits = false;
  /// A key whose turn comes later gets -901, and so does one whose bytes were still being copied; but not one whose bytes
  /// were being overwritten where they are, as nobody has the old ones any more.
  Deadline deadline;
};

/// Where an object lies, as replicas() tells it.
struct ReplicaPlace {
  std::uint64_t size;
  std::uint64_t address;
};

/// A value read into memory of its own.
struct OwnedValue {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::uint64_t size = 0;
};

/// Mooncake's object store inside this process. All calls are thread-safe, and block only for their own copies. A
/// batch call gives each key a code of its own in `codes`; after close() every call gives -600 for everything. -1 is
/// the code of a call that the system had no memory for.
///
/// Objects that were put with one group name share their leases, whoever put them: reading one protects all that are there.
/// They are evicted together. A read renews a lease of a group of which half is over, or which a member has joined since.
class EmbeddedStore {
 public:
  /// Throws what Mapping throws.
  explicit EmbeddedStore(const StoreOptions& options);
  ~EmbeddedStore();

  /// 0, or -600 as RegionRegistry has it, and for memory that this process can't read and write.
  std::int32_t register_buffer(std::uint64_t address, std::uint64_t size, std::shared_ptr<const void> owner = nullptr);
  std::int32_t unregister_buffer(std::uint64_t address);

  /// Gathers the segments of each key into one object. 0: stored, or the key existed and stays as it is, be it written
  /// by somebody at this moment (the first of equal keys in a batch wins). -600: empty key, no bytes, bad configuration,
  /// or a segment outside the registered regions. -200: no room. -601: somebody took the key over meanwhile.
  void put_from(const KeyBatch& keys, const SegmentBatch& segments, const PutConfig& config, const CallOptions& call,
                std::int32_t* codes);
  /// The same, but the new bytes replace those of an object that exists. One of the same size is overwritten where it
  /// is, unless a reader is in it. A failure leaves the old object. -714: readers are in it and there is no room for a
  /// second copy.
  void upsert_from(const KeyBatch& keys, const SegmentBatch& segments, const PutConfig& config, const CallOptions& call,
                   std::int32_t* codes);
  /// Scatters each object over the segments of its key and gives its size. -704: absent. -703: its put is not finished.
  /// -600: the segments are too small, or not registered. -800: they are too large. -707: the lease ran out meanwhile.
  void get_into(const KeyBatch& keys, const SegmentBatch& segments, const CallOptions& call, std::int64_t* codes);
  /// The same into memory that it allocates; values[i] is empty where codes[i] is negative.
  void get(const KeyBatch& keys, const CallOptions& call, std::int64_t* codes, std::vector<OwnedValue>& values);
  /// 1 for a complete object, else 0.
  void exists(const KeyBatch& keys, const CallOptions& call, std::int32_t* codes);
  /// The size in bytes, -704 or -703.
  void size(const KeyBatch& keys, const CallOptions& call, std::int64_t* codes);
  /// 1 (one replica) with its place, -704 or -703.
  void replicas(const KeyBatch& keys, const CallOptions& call, std::int32_t* codes, ReplicaPlace* places);
  /// 0, -704, -703, or -706 under a lease. Calls that read the object finish undisturbed.
  void remove(const KeyBatch& keys, bool force, const CallOptions& call, std::int32_t* codes);
  /// How many objects went. -600: a pattern that is none, or that KeyPattern finds too large, or too ambiguous for a key that
  /// is there. -901: the deadline came before all keys were looked at. Nothing is removed then.
  std::int64_t remove_by_regex(std::string_view pattern, bool force, const Deadline& deadline = {});
  /// How many objects went, or -901 when the deadline came in between: some are removed, and stay so.
  std::int64_t remove_all(bool force, const Deadline& deadline = {});

  // A put in parts, for one client. 0; -600: no such session, or one that is open already.
  /// Also -705 for an object that exists, -200.
  void start_put(std::uint64_t client, const KeyBatch& keys, const std::uint64_t* sizes, const PutConfig& config,
                 std::int32_t* codes);
  /// Copies each segment of a key to the offset in `targets` of its object, and gives the bytes.
  void write_put(std::uint64_t client, const KeyBatch& keys, const SegmentBatch& segments, const std::uint64_t* targets,
                 const CallOptions& call, std::int64_t* codes);
  /// Also -601 when somebody took the key over.
  void end_put(std::uint64_t client, const KeyBatch& keys, std::int32_t* codes);
  void revoke_put(std::uint64_t client, const KeyBatch& keys, std::int32_t* codes);

  /// All zero after close().
  StoreStats stats() const;
  /// Moves the clock of a store that has a manual one; others ignore it.
  void advance(std::uint64_t milliseconds);
  /// Drops all objects and regions. Running calls finish; their memory goes with the last of them.
  void close();

 private:
  struct State;
  class Put;
  class Get;
  std::shared_ptr<State> state() const;
  void write(bool upsert, const KeyBatch& keys, const SegmentBatch& segments, const PutConfig& config,
             const CallOptions& call, std::int32_t* codes);

  mutable std::mutex mutex_;
  std::shared_ptr<State> state_;  // null once closed
};

}  // namespace mooncake_kv
