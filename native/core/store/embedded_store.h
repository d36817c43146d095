#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "store/batch.h"

namespace mooncake_kv {

struct StoreOptions {
  /// Bytes for values.
  std::uint64_t capacity;
  /// Threads that share one large copy; 0 chooses.
  unsigned copy_threads = 0;
};

struct StoreStats {
  std::uint64_t keys;
  std::uint64_t capacity;
  /// Sum of the object sizes, as Mooncake reports it.
  std::uint64_t used;
  /// The same with allocation rounding: what decides whether another object fits.
  std::uint64_t occupied;
};

/// Mooncake's object store inside this process. All calls are thread-safe, and block only for their own copies. A
/// batch call gives each key a code of its own in `codes`; after close() every call gives -600 for everything.
class EmbeddedStore {
 public:
  /// Throws what Mapping throws.
  explicit EmbeddedStore(const StoreOptions& options);
  ~EmbeddedStore();

  /// 0, or -600 as RegionRegistry has it, and for memory that this process can't read and write.
  std::int32_t register_buffer(std::uint64_t address, std::uint64_t size, std::shared_ptr<const void> owner = nullptr);
  std::int32_t unregister_buffer(std::uint64_t address);

  /// Gathers the segments of each key into one object. 0: stored, or the key existed and stays as it is (the first of
  /// equal keys in a batch wins). -600: empty key, no bytes, or a segment outside the registered regions. -200: no room.
  void put_from(const KeyBatch& keys, const SegmentBatch& segments, std::int32_t* codes);
  /// Scatters each object over the segments of its key and gives its size. -704: absent. -703: its put is not finished.
  /// -600: the segments are too small, or not registered. -800: they are too large. On an error nothing is written.
  void get_into(const KeyBatch& keys, const SegmentBatch& segments, std::int64_t* codes);
  /// 1 for a complete object, else 0.
  void exists(const KeyBatch& keys, std::int32_t* codes);
  /// The size in bytes, -704 or -703.
  void size(const KeyBatch& keys, std::int64_t* codes);
  /// 0, -704 or -703. Calls that read the object finish undisturbed.
  void remove(const KeyBatch& keys, std::int32_t* codes);

  /// All zero after close().
  StoreStats stats() const;
  /// Drops all objects and regions. Running calls finish; their memory goes with the last of them.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state() const;

  mutable std::mutex mutex_;
  std::shared_ptr<State> state_;  // null once closed
};

}  // namespace mooncake_kv
