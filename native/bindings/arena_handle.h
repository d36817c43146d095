#pragma once

#include <napi.h>

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

}  // namespace mooncake_kv::bindings
