#include "memory/arena.h"

#include "memory/mapping.h"

namespace mooncake_kv {
namespace {

class HostArena final : public Arena {
 public:
  explicit HostArena(std::uint64_t size) : mapping_(size, Mapping::Kind::shareable) {}

  std::uint64_t address() const override { return reinterpret_cast<std::uintptr_t>(mapping_.data()); }
  std::uint64_t size() const override { return mapping_.size(); }
  std::uint8_t* host_bytes() const override { return mapping_.data(); }
  int fd() const override { return mapping_.fd(); }

 private:
  Mapping mapping_;
};

}  // namespace

std::shared_ptr<Arena> make_host_arena(std::uint64_t size) { return std::make_shared<HostArena>(size); }

}  // namespace mooncake_kv
