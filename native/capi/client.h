#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "cluster.h"
#include "memory/region_registry.h"
#include "mooncake_store.h"

namespace mooncake_kv::capi {

/// What is behind a mooncake_store_t. Thread-safe.
class Client {
 public:
  ~Client();

  /// 0 or a code, as mooncake_store_setup has it.
  int setup(const std::string& hostname, const std::string& metadata_server, std::uint64_t segment, std::uint64_t local_buffer,
            const std::string& protocol, const std::string& master);
  /// Null before setup.
  std::shared_ptr<EmbeddedStore> store() const;
  std::uint64_t local_buffer() const;
  std::string hostname() const;
  RegionRegistry& regions() { return regions_; }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Cluster> cluster_;
  std::string hostname_;
  std::uint64_t local_buffer_ = 0;
  bool owner_ = false;
  RegionRegistry regions_;
};

}  // namespace mooncake_kv::capi
