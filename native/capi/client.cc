#include "client.h"

#include <atomic>

#include "codes.h"
#include "imitation.h"
#include "words.h"

namespace mooncake_kv::capi {
namespace {

constexpr std::uint64_t smallest_segment = std::uint64_t{16} << 20;

/// Mooncake gives a client without a port a free one from this number on.
std::atomic<unsigned> next_port{12300};

}  // namespace

Client::~Client() {
  if (owner_) cluster_->unmount();
}

int Client::setup(const std::string& hostname, const std::string& metadata_server, std::uint64_t segment,
                  std::uint64_t local_buffer, const std::string& protocol, const std::string& master) {
  if (hostname.empty() || (segment != 0 && segment < smallest_segment)) return code::invalid_params;
  if (protocol != "tcp" && protocol != "rdma") return code::internal_error;
  Imitation::get().on_setup(metadata_server, master);
  if (!known_metadata_server(metadata_server) || master.empty()) return code::invalid_params;
  const std::lock_guard lock(mutex_);
  if (cluster_) return code::ok;
  const auto cluster = Cluster::join(master);
  owner_ = segment > 0 && cluster->mount(segment);
  cluster_ = cluster;
  local_buffer_ = local_buffer;
  hostname_ = hostname.find(':') != std::string::npos ? hostname : hostname + ":" + std::to_string(next_port++);
  return code::ok;
}

std::shared_ptr<EmbeddedStore> Client::store() const {
  const std::lock_guard lock(mutex_);
  return cluster_ ? cluster_->store() : nullptr;
}

std::uint64_t Client::local_buffer() const {
  const std::lock_guard lock(mutex_);
  return local_buffer_;
}

std::string Client::hostname() const {
  const std::lock_guard lock(mutex_);
  return hostname_;
}

}  // namespace mooncake_kv::capi
