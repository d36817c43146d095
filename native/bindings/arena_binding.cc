#include "addon.h"
#include "arena_handle.h"
#include "arguments.h"
#include "handle.h"

namespace mooncake_kv::bindings {
namespace {

/// An ArrayBuffer over the bytes of the arena, without a copy.
Napi::ArrayBuffer make_buffer(Napi::Env env, const std::shared_ptr<Arena>& arena) {
  auto owner = std::make_unique<std::shared_ptr<Arena>>(arena);
  const auto finalize = [](napi_env, void*, void* hint) { delete static_cast<std::shared_ptr<Arena>*>(hint); };
  napi_value buffer = nullptr;
  const napi_status status = napi_create_external_arraybuffer(env, arena->host_bytes(), arena->size(), finalize, owner.get(), &buffer);
  if (status == napi_no_external_buffers_allowed)
    throw native_error(env, "this runtime allows no ArrayBuffer over memory of an addon (it uses pointer compression or a sandbox); "
                            "an arena needs one, use a standard build of Node");
  if (status != napi_ok) throw Napi::Error::New(env);
  owner.release();
  return Napi::ArrayBuffer(env, buffer);
}

/// arenaCreate(bytes) -> { handle, buffer, baseAddress, fd }
Napi::Value create(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::uint64_t size = uint64_argument(info[0], "bytes");
  // What any Node of today can show as one ArrayBuffer; more would end the process.
  constexpr std::uint64_t largest = (std::uint64_t{1} << 32) - 1;
  if (size == 0 || size > largest) throw bad_argument(env, "bytes", "from 1 to 2^32 - 1 for one arena");
  auto native = std::make_unique<ArenaHandle>();
  native->arena = with_native_errors(env, [&] { return make_host_arena(size); });
  const std::shared_ptr<Arena> arena = native->arena;
  const Napi::ArrayBuffer buffer = make_buffer(env, arena);
  native->buffer = Napi::Weak(buffer);
  Napi::Object made = Napi::Object::New(env);
  made.Set("handle", Handle<ArenaHandle>::wrap(env, std::move(native)));
  made.Set("buffer", buffer);
  made.Set("baseAddress", Napi::BigInt::New(env, arena->address()));
  made.Set("fd", Napi::Number::New(env, arena->fd()));
  return made;
}

/// arenaClose(handle): views of the bytes become empty. The memory stays for as long as a store or a call needs it.
Napi::Value close(const Napi::CallbackInfo& info) {
  ArenaHandle& native = Handle<ArenaHandle>::unwrap(info[0]);
  native.arena.reset();
  if (!native.buffer.IsEmpty()) {
    Napi::ArrayBuffer buffer = native.buffer.Value();
    if (!buffer.IsEmpty() && !buffer.IsDetached()) buffer.Detach();
    native.buffer.Reset();
  }
  return info.Env().Undefined();
}

}  // namespace

std::shared_ptr<Arena> open_arena(const Napi::Value& handle) {
  std::shared_ptr<Arena> arena = Handle<ArenaHandle>::unwrap(handle).arena;
  if (!arena) throw bad_argument(handle.Env(), "the arena handle", "of an arena that is open");
  return arena;
}

ArenaPart arena_part(const Napi::CallbackInfo& info, std::size_t first) {
  ArenaPart part{open_arena(info[first]), 0, 0};
  part.address = part.arena->address();
  part.size = part.arena->size();
  if (info[first + 1].IsUndefined() && info[first + 2].IsUndefined()) return part;
  const std::uint64_t address = uint64_argument(info[first + 1], "address");
  const std::uint64_t size = uint64_argument(info[first + 2], "bytes");
  if (address < part.address || address - part.address > part.size || size > part.size - (address - part.address))
    throw bad_argument(info.Env(), "address and bytes", "inside the arena");
  part.address = address;
  part.size = size;
  return part;
}

void export_arena(Napi::Env env, Napi::Object exports) {
  exports.Set("arenaCreate", Napi::Function::New(env, create, "arenaCreate"));
  exports.Set("arenaClose", Napi::Function::New(env, close, "arenaClose"));
}

}  // namespace mooncake_kv::bindings
