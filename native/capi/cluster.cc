#include "cluster.h"

#include <cstdlib>

#include "words.h"

namespace mooncake_kv::capi {
namespace {

struct Clusters {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Cluster>> by_master;
};

/// Never destroyed: clients may outlive the static objects of this library.
Clusters& clusters() {
  static Clusters* all = new Clusters;
  return *all;
}

double ratio(const std::string& text, double otherwise) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && value >= 0 && value <= 1 ? value : otherwise;
}

StoreOptions options_with(std::uint64_t capacity) {
  StoreOptions options;
  options.capacity = capacity;
  for (const auto& [name, value] : split_words(std::getenv("MOONCAKE_KV_MASTER_FLAGS"))) {
    if (name == "default_kv_lease_ttl") options.lease_ttl_ms = whole_number(value, options.lease_ttl_ms);
    if (name == "default_kv_soft_pin_ttl") options.soft_pin_ttl_ms = whole_number(value, options.soft_pin_ttl_ms);
    if (name == "max_kv_soft_pin_ttl") options.max_soft_pin_ttl_ms = whole_number(value, options.max_soft_pin_ttl_ms);
    if (name == "allow_evict_soft_pinned_objects") options.evict_soft_pinned = value != "false" && value != "0";
    if (name == "eviction_ratio") options.eviction_ratio = ratio(value, options.eviction_ratio);
    if (name == "eviction_high_watermark_ratio") options.eviction_high_watermark = ratio(value, options.eviction_high_watermark);
    if (name == "put_start_discard_timeout_sec") options.discard_timeout_ms = 1000 * whole_number(value, 30);
    if (name == "put_start_release_timeout_sec") options.release_timeout_ms = 1000 * whole_number(value, 600);
  }
  return options;
}

}  // namespace

Cluster::Cluster() : store_(std::make_shared<EmbeddedStore>(options_with(0))) {}

std::shared_ptr<Cluster> Cluster::join(const std::string& master) {
  Clusters& all = clusters();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<Cluster>& known = all.by_master[master];
  if (auto cluster = known.lock()) return cluster;
  std::shared_ptr<Cluster> cluster(new Cluster);
  known = cluster;
  return cluster;
}

std::shared_ptr<EmbeddedStore> Cluster::store() const {
  const std::lock_guard lock(mutex_);
  return store_;
}

bool Cluster::mount(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (mounted_) return false;
  store_ = std::make_shared<EmbeddedStore>(options_with(bytes));
  mounted_ = true;
  return true;
}

void Cluster::unmount() {
  const auto empty = std::make_shared<EmbeddedStore>(options_with(0));
  const std::lock_guard lock(mutex_);
  store_ = empty;
  mounted_ = false;
}

}  // namespace mooncake_kv::capi
