#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "addon.h"
#include "arena_handle.h"
#include "arguments.h"
#include "handle.h"
#include "promise_worker.h"
#include "store/embedded_store.h"
#include "store_arguments.h"

namespace mooncake_kv::bindings {
namespace {

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

/// For calls that give one number.
template <typename Body>
Napi::Value run_number(const Napi::CallbackInfo& info, const char* name, Body body) {
  auto number = std::make_shared<double>(0);
  return run_async(
      info.Env(), name, [store = store_argument(info), number, body] { *number = static_cast<double>(body(*store)); },
      [number](Napi::Env env) { return Napi::Number::New(env, *number); });
}

/// storeOpen(options) -> handle
Napi::Value open(const Napi::CallbackInfo& info) {
  const StoreOptions options = store_options(info[0]);
  auto native = std::make_unique<StoreHandle>();
  native->store = with_native_errors(info.Env(), [&] { return std::make_shared<EmbeddedStore>(options); });
  return Handle<StoreHandle>::wrap(info.Env(), std::move(native));
}

/// storeRegisterArena(store, arena, address?, bytes?) -> Promise<code>
Napi::Value register_arena(const Napi::CallbackInfo& info) {
  return run_number(info, "mooncake-kv.registerArena", [part = arena_part(info, 1)](EmbeddedStore& store) {
    return store.register_buffer(part.address, part.size, part.arena);
  });
}

/// storeRegister(store, address, bytes) -> Promise<code>
Napi::Value register_buffer(const Napi::CallbackInfo& info) {
  const std::uint64_t address = uint64_argument(info[1], "address");
  const std::uint64_t size = uint64_argument(info[2], "bytes");
  return run_number(info, "mooncake-kv.register",
                    [address, size](EmbeddedStore& store) { return store.register_buffer(address, size); });
}

/// storeUnregister(store, address) -> Promise<code>
Napi::Value unregister_buffer(const Napi::CallbackInfo& info) {
  const std::uint64_t address = uint64_argument(info[1], "address");
  return run_number(info, "mooncake-kv.unregister", [address](EmbeddedStore& store) { return store.unregister_buffer(address); });
}

/// storePutFrom(store, keyBytes, keyOffsets, addresses, sizes, rowOffsets, config, deadlineMs?, cancellation?) -> Promise<codes>
Napi::Value put_from(const Napi::CallbackInfo& info) {
  const auto config = std::make_shared<OwnedPutConfig>(info[6]);
  return run_segments<std::int32_t>(
      info, "mooncake-kv.putFrom",
      [config, call = call_options(info, 7)](EmbeddedStore& store, const KeyBatch& keys, const SegmentBatch& segments, std::int32_t* codes) {
        store.put_from(keys, segments, config->view(), call, codes);
      });
}

/// storeUpsertFrom: as storePutFrom
Napi::Value upsert_from(const Napi::CallbackInfo& info) {
  const auto config = std::make_shared<OwnedPutConfig>(info[6]);
  return run_segments<std::int32_t>(
      info, "mooncake-kv.upsertFrom",
      [config, call = call_options(info, 7)](EmbeddedStore& store, const KeyBatch& keys, const SegmentBatch& segments, std::int32_t* codes) {
        store.upsert_from(keys, segments, config->view(), call, codes);
      });
}

/// storeGetInto(store, keyBytes, keyOffsets, addresses, sizes, rowOffsets, deadlineMs?, cancellation?) -> Promise<codes>
Napi::Value get_into(const Napi::CallbackInfo& info) {
  return run_segments<std::int64_t>(
      info, "mooncake-kv.getInto",
      [call = call_options(info, 6)](EmbeddedStore& store, const KeyBatch& keys, const SegmentBatch& segments, std::int64_t* codes) {
        store.get_into(keys, segments, call, codes);
      });
}

/// storeExists(store, keyBytes, keyOffsets, deadlineMs?, cancellation?) -> Promise<codes>
Napi::Value exists(const Napi::CallbackInfo& info) {
  return run_keys<std::int32_t>(info, "mooncake-kv.exists",
                                [call = call_options(info, 3)](EmbeddedStore& store, const KeyBatch& keys, std::int32_t* codes) {
                                  store.exists(keys, call, codes);
                                });
}

/// storeSize: as storeExists
Napi::Value size(const Napi::CallbackInfo& info) {
  return run_keys<std::int64_t>(info, "mooncake-kv.size",
                                [call = call_options(info, 3)](EmbeddedStore& store, const KeyBatch& keys, std::int64_t* codes) {
                                  store.size(keys, call, codes);
                                });
}

/// storeRemove(store, keyBytes, keyOffsets, force, deadlineMs?, cancellation?) -> Promise<codes>
Napi::Value remove(const Napi::CallbackInfo& info) {
  const bool force = info[3].ToBoolean();
  return run_keys<std::int32_t>(
      info, "mooncake-kv.remove",
      [force, call = call_options(info, 4)](EmbeddedStore& store, const KeyBatch& keys, std::int32_t* codes) {
        store.remove(keys, force, call, codes);
      });
}

/// storeReplicas(store, keyBytes, keyOffsets, deadlineMs?, cancellation?) -> Promise<{ codes, sizes, addresses }>
Napi::Value replicas(const Napi::CallbackInfo& info) {
  struct Call {
    std::shared_ptr<EmbeddedStore> store;
    OwnedKeys keys;
    std::vector<std::int32_t> codes;
    std::vector<ReplicaPlace> places;
  };
  OwnedKeys keys(info[1], info[2]);
  const std::size_t count = keys.count();
  auto call = std::make_shared<Call>(
      Call{store_argument(info), std::move(keys), std::vector<std::int32_t>(count), std::vector<ReplicaPlace>(count)});
  return run_async(
      info.Env(), "mooncake-kv.replicas",
      [call, options = call_options(info, 3)] {
        call->store->replicas(call->keys.view(), options, call->codes.data(), call->places.data());
      },
      [call](Napi::Env env) -> Napi::Value {
        auto sizes = Napi::BigUint64Array::New(env, call->places.size());
        auto addresses = Napi::BigUint64Array::New(env, call->places.size());
        for (std::size_t i = 0; i < call->places.size(); i++) {
          sizes[i] = call->places[i].size;
          addresses[i] = call->places[i].address;
        }
        Napi::Object found = Napi::Object::New(env);
        found.Set("codes", typed_array(env, call->codes));
        found.Set("sizes", sizes);
        found.Set("addresses", addresses);
        return found;
      });
}

/// storeRemoveByRegex(store, pattern: Uint8Array, force, deadlineMs?, cancellation?) -> Promise<count or code>
Napi::Value remove_by_regex(const Napi::CallbackInfo& info) {
  const auto pattern = copied_array<std::uint8_t>(info[1], "pattern");
  const bool force = info[2].ToBoolean();
  const Deadline deadline = call_options(info, 3).deadline;
  return run_number(info, "mooncake-kv.removeByRegex", [pattern, force, deadline](EmbeddedStore& store) {
    return store.remove_by_regex({reinterpret_cast<const char*>(pattern.data()), pattern.size()}, force, deadline);
  });
}

/// storeRemoveAll(store, force, deadlineMs?, cancellation?) -> Promise<count or code>
Napi::Value remove_all(const Napi::CallbackInfo& info) {
  const bool force = info[1].ToBoolean();
  const Deadline deadline = call_options(info, 2).deadline;
  return run_number(info, "mooncake-kv.removeAll", [force, deadline](EmbeddedStore& store) { return store.remove_all(force, deadline); });
}

/// storeStats(store) -> counts, all bigint
Napi::Value stats(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const StoreStats stats = store_argument(info)->stats();
  Napi::Object object = Napi::Object::New(env);
  const auto set = [&](const char* name, std::uint64_t count) { object.Set(name, Napi::BigInt::New(env, count)); };
  set("keys", stats.keys);
  set("capacity", stats.capacity);
  set("used", stats.used);
  set("occupied", stats.occupied);
  set("hits", stats.hits);
  set("misses", stats.misses);
  set("stored", stats.stored);
  set("removed", stats.removed);
  set("evicted", stats.evicted);
  set("evictedBytes", stats.evicted_bytes);
  set("refusals", stats.refusals);
  return object;
}

/// storeAdvance(store, milliseconds): moves a manual clock, and evicts what falls due.
Napi::Value advance(const Napi::CallbackInfo& info) {
  store_argument(info)->advance(uint64_argument(info[1], "milliseconds"));
  return info.Env().Undefined();
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
  add("storeUpsertFrom", upsert_from);
  add("storeGetInto", get_into);
  add("storeExists", exists);
  add("storeSize", size);
  add("storeReplicas", replicas);
  add("storeRemove", remove);
  add("storeRemoveByRegex", remove_by_regex);
  add("storeRemoveAll", remove_all);
  add("storeStats", stats);
  add("storeAdvance", advance);
  add("storeClose", close);
  export_cancellation(env, exports);
  export_store_values(env, exports);
  export_store_sessions(env, exports);
}

}  // namespace mooncake_kv::bindings
