#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/arena.h"

namespace mooncake_kv::bindings {

/// An arena as JavaScript holds it. The ArrayBuffer over its bytes owns the arena too, as do the stores that it is
/// registered with: the memory goes when none of them is left.
struct ArenaHandle {
  static constexpr const char* handle_name = "arena";

  std::shared_ptr<Arena> arena;  // null once closed
  Napi::Reference<Napi::ArrayBuffer> buffer;  // weak
};

/// The arena of a handle. Throws for one that is closed: whoever still names it would touch memory that is gone.
std::shared_ptr<Arena> open_arena(const Napi::Value& handle);

/// Memory inside an arena, which owns it.
struct ArenaPart {
  std::shared_ptr<Arena> arena;
  std::uint64_t address;
  std::uint64_t size;
};

/// The arguments (arena, address?, bytes?) from `first` on; without the last two all of the arena is meant. Throws for a
/// part that does not lie inside.
ArenaPart arena_part(const Napi::CallbackInfo& info, std::size_t first);

}  // namespace mooncake_kv::bindings
