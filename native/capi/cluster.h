#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "store/embedded_store.h"

namespace mooncake_kv::capi {

/// All clients of one master address in this process.
class Cluster {
 public:
  /// The cluster of an address, made by the first that asks; it lasts as long as somebody holds it.
  static std::shared_ptr<Cluster> join(const std::string& master);

  /// The store of this moment. It takes nothing as long as nobody has mounted a segment.
  std::shared_ptr<EmbeddedStore> store() const;
  /// Brings memory. Only the first segment counts: true for the client whose it is. Throws what Mapping throws.
  bool mount(std::uint64_t bytes);
  /// Takes it away again, with the objects in it.
  void unmount();

 private:
  Cluster();

  mutable std::mutex mutex_;
  std::shared_ptr<EmbeddedStore> store_;
  bool mounted_ = false;
};

}  // namespace mooncake_kv::capi
