#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace mooncake_kv {

/// [first, last], both inside: the end of a region may be the end of the address space.
struct Region {
  std::uint64_t first;
  std::uint64_t last;
  std::shared_ptr<const void> owner;
  std::uint32_t users = 0;  // guarded by the registry's mutex

  bool covers(std::uint64_t address, std::uint64_t size) const {
    if (address < first) return false;
    if (size == 0) return address <= last || address - 1 == last;
    return address <= last && size - 1 <= last - address;
  }
};

/// The memory that calls may touch. A region is refused when it is empty, starts at NULL, wraps around or overlaps
/// another one; adjacent regions are fine and stay two regions.
class RegionRegistry {
 public:
  /// 0, or -600. `owner` keeps the memory alive for as long as the region or a call that uses it exists.
  std::int32_t add(std::uint64_t address, std::uint64_t size, std::shared_ptr<const void> owner = nullptr);

  /// 0, or -600 for anything but the exact start of a region. Returns when no running call uses the region any more,
  /// so that the caller may free the memory at once.
  std::int32_t remove(std::uint64_t address);

  /// The regions that one running call uses. They can't go away before the guard does.
  class Guard {
   public:
    explicit Guard(RegionRegistry& registry) : registry_(registry) {}
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    /// Whether [address, address + size) lies inside one registered region; an empty range may also sit at its end.
    bool covers(std::uint64_t address, std::uint64_t size);

   private:
    RegionRegistry& registry_;
    std::vector<std::shared_ptr<Region>> held_;
    std::size_t last_ = 0;  // where the latest segment lay
  };

 private:
  std::shared_ptr<Region> find_and_use(std::uint64_t address, std::uint64_t size);

  std::mutex mutex_;
  std::condition_variable unused_;
  std::map<std::uint64_t, std::shared_ptr<Region>> regions_;  // by first address
};

}  // namespace mooncake_kv
