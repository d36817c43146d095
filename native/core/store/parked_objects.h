#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "store/object.h"

namespace mooncake_kv {

/// Objects that were replaced, or whose writer was overtaken: their space stays taken until a timeout, because a
/// writer or reader in another process may still be in it. Mooncake counts them as used, and so do we. Thread-safe.
class ParkedObjects {
 public:
  explicit ParkedObjects(std::int64_t timeout) : timeout_(timeout) {}

  /// Gives the space back at once when there is no memory for the bookkeeping.
  void park(ObjectRef object, std::int64_t now) noexcept;
  /// Gives back what is due.
  void release_due(std::int64_t now) noexcept;
  /// When the next one is due, or INT64_MAX.
  std::int64_t next_due() const;
  void clear() noexcept;

 private:
  struct Parked {
    std::int64_t due;
    ObjectRef object;
  };

  const std::int64_t timeout_;
  mutable std::mutex mutex_;
  std::deque<Parked> parked_;  // sorted by due: the timeout is the same for all
};

}  // namespace mooncake_kv
