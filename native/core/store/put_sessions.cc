#include "store/put_sessions.h"

namespace mooncake_kv {

bool PutSessions::has(std::uint64_t client, std::string_view key) const {
  return static_cast<bool>(find(client, key).object);
}

void PutSessions::open(std::uint64_t client, std::string_view key, Writing writing) {
  const std::lock_guard lock(mutex_);
  open_.try_emplace(Id(client, key), std::move(writing));
}

Writing PutSessions::find(std::uint64_t client, std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(Id(client, key));
  return found == open_.end() ? Writing() : found->second;
}

Writing PutSessions::close(std::uint64_t client, std::string_view key) {
  const std::lock_guard lock(mutex_);
  auto node = open_.extract(Id(client, key));
  return node.empty() ? Writing() : std::move(node.mapped());
}

void PutSessions::clear() {
  std::map<Id, Writing> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(open_);
  }
}

}  // namespace mooncake_kv
