#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "addon.h"
#include "arena_handle.h"
#include "arguments.h"
#include "handle.h"
#include "promise_worker.h"
#include "store/embedded_store.h"

namespace mooncake_kv::bindings {
namespace {

struct StoreHandle {
  static constexpr const char* handle_name = "store";

  std::shared_ptr<EmbeddedStore> store;
};

const std::shared_ptr<EmbeddedStore>& store_argument(const Napi::CallbackInfo& info) {
  return Handle<StoreHandle>::unwrap(info[0]).store;
}

Napi::Value typed_array(Napi::Env env, const std::vector<std::int32_t>& codes) {
  auto array = Napi::Int32Array::New(env, codes.size());
  std::copy(codes.begin(), codes.end(), array.Data());
  return array;
}

Napi::Value typed_array(Napi::Env env, const std::vector<std::int64_t>& codes) {
  auto array = Napi::BigInt64Array::New(env, codes.size());
  std::copy(codes.begin(), codes.end(), array.Data());
  return array;
}

/// Runs `body(store, keys, segments, codes)` off the JavaScript thread; the promise gives the codes.
template <typename Code, typename Body>
Napi::Value run_segments(const Napi::CallbackInfo& info, const char* name, Body body) {
  struct Call {
    std::shared_ptr<EmbeddedStore> store;
    OwnedKeys keys;
    OwnedSegments segments;
    std::vector<Code> codes;
  };
  const auto& store = store_argument(info);
  OwnedKeys keys(info[1], info[2]);
  const std::size_t count = keys.count();
  auto call = std::make_shared<Call>(Call{store, std::move(keys), OwnedSegments(info[3], info[4], info[5], count), std::vector<Code>(count)});
  return run_async(
      info.Env(), name, [call, body] { body(*call->store, call->keys.view(), call->segments.view(), call->codes.data()); },
      [call](Napi::Env env) { return typed_array(env, call->codes); });
}

/// The same for calls without segments.
template <typename Code, typename Body>
Napi::Value run_keys(const Napi::CallbackInfo& info, const char* name, Body body) {
  struct Call {
    std::shared_ptr<EmbeddedStore> store;
    OwnedKeys keys;
    std::vector<Code> codes;
  };
  const auto& store = store_argument(info);
  OwnedKeys keys(info[1], info[2]);
  const std::size_t count = keys.count();
  auto call = std::make_shared<Call>(Call{store, std::move(keys), std::vector<Code>(count)});
  return run_async(
      info.Env(), name, [call, body] { body(*call->store, call->keys.view(), call->codes.data()); },
      [call](Napi::Env env) { return typed_array(env, call->codes); });
}

/// For calls about one region: the promise gives one code.
template <typename Body>
Napi::Value run_region(const Napi::CallbackInfo& info, const char* name, Body body) {
  auto code = std::make_shared<std::int32_t>(0);
  return run_async(
      info.Env(), name, [store = store_argument(info), code, body] { *code = body(*store); },
      [code](Napi::Env env) { return Napi::Number::New(env, *code); });
}

/// storeOpen(capacity, copyThreads) -> handle
Napi::Value open(const Napi::CallbackInfo& info) {
  const std::uint64_t capacity = uint64_argument(info[0], "capacity");
  const std::uint64_t threads = uint64_argument(info[1], "copyThreads");
  if (capacity == 0) throw bad_argument(info.Env(), "capacity", "at least one byte");
  if (threads > 64) throw bad_argument(info.Env(), "copyThreads", "from 0 to 64");
  auto native = std::make_unique<StoreHandle>();
  native->store = with_native_errors(info.Env(), [&] {
    return std::make_shared<EmbeddedStore>(StoreOptions{capacity, static_cast<unsigned>(threads)});
  });
  return Handle<StoreHandle>::wrap(info.Env(), std::move(native));
}

/// storeRegisterArena(store, arena) -> Promise<code>
Napi::Value register_arena(const Napi::CallbackInfo& info) {
  const std::shared_ptr<Arena> arena = Handle<ArenaHandle>::unwrap(info[1]).arena;
  if (!arena) throw bad_argument(info.Env(), "the arena handle", "of an arena that is open");
  return run_region(info, "mooncake-kv.registerArena",
                    [arena](EmbeddedStore& store) { return store.register_buffer(arena->address(), arena->size(), arena); });
}

/// storeRegister(store, address, bytes) -> Promise<code>
Napi::Value register_buffer(const Napi::CallbackInfo& info) {
  const std::uint64_t address = uint64_argument(info[1], "address");
  const std::uint64_t size = uint64_argument(info[2], "bytes");
  return run_region(info, "mooncake-kv.register",
                    [address, size](EmbeddedStore& store) { return store.register_buffer(address, size); });
}

/// storeUnregister(store, address) -> Promise<code>
Napi::Value unregister_buffer(const Napi::CallbackInfo& info) {
  const std::uint64_t address = uint64_argument(info[1], "address");
  return run_region(info, "mooncake-kv.unregister", [address](EmbeddedStore& store) { return store.unregister_buffer(address); });
}

Napi::Value put_from(const Napi::CallbackInfo& info) {
  return run_segments<std::int32_t>(info, "mooncake-kv.putFrom",
                                    [](EmbeddedStore& store, auto&&... args) { store.put_from(args...); });
}

Napi::Value get_into(const Napi::CallbackInfo& info) {
  return run_segments<std::int64_t>(info, "mooncake-kv.getInto",
                                    [](EmbeddedStore& store, auto&&... args) { store.get_into(args...); });
}

Napi::Value exists(const Napi::CallbackInfo& info) {
  return run_keys<std::int32_t>(info, "mooncake-kv.exists", [](EmbeddedStore& store, auto&&... args) { store.exists(args...); });
}

Napi::Value size(const Napi::CallbackInfo& info) {
  return run_keys<std::int64_t>(info, "mooncake-kv.size", [](EmbeddedStore& store, auto&&... args) { store.size(args...); });
}

Napi::Value remove(const Napi::CallbackInfo& info) {
  return run_keys<std::int32_t>(info, "mooncake-kv.remove", [](EmbeddedStore& store, auto&&... args) { store.remove(args...); });
}

/// storeStats(store) -> { keys, capacity, used, occupied }, all bigint
Napi::Value stats(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const StoreStats stats = store_argument(info)->stats();
  Napi::Object object = Napi::Object::New(env);
  object.Set("keys", Napi::BigInt::New(env, stats.keys));
  object.Set("capacity", Napi::BigInt::New(env, stats.capacity));
  object.Set("used", Napi::BigInt::New(env, stats.used));
  object.Set("occupied", Napi::BigInt::New(env, stats.occupied));
  return object;
}

/// storeClose(store) -> Promise<void>
Napi::Value close(const Napi::CallbackInfo& info) {
  return run_async(
      info.Env(), "mooncake-kv.close", [store = store_argument(info)] { store->close(); },
      [](Napi::Env env) { return env.Undefined(); });
}

}  // namespace

void export_store(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("storeOpen", open);
  add("storeRegisterArena", register_arena);
  add("storeRegister", register_buffer);
  add("storeUnregister", unregister_buffer);
  add("storePutFrom", put_from);
  add("storeGetInto", get_into);
  add("storeExists", exists);
  add("storeSize", size);
  add("storeRemove", remove);
  add("storeStats", stats);
  add("storeClose", close);
}

}  // namespace mooncake_kv::bindings
