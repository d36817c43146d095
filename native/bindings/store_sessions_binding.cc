#include <memory>
#include <utility>
#include <vector>

#include "arguments.h"
#include "handle.h"
#include "promise_worker.h"
#include "store_arguments.h"

namespace mooncake_kv::bindings {
namespace {

// A put in parts. These calls serve tests, and are short: they run on the JavaScript thread.

/// storeStartPut(store, client, keyBytes, keyOffsets, sizes, config) -> codes
Napi::Value start(const Napi::CallbackInfo& info) {
  const OwnedKeys keys(info[2], info[3]);
  const auto sizes = copied_array<std::uint64_t>(info[4], "sizes");
  if (sizes.size() != keys.count()) throw bad_argument(info.Env(), "sizes", "as many as there are keys");
  const OwnedPutConfig config(info[5]);
  std::vector<std::int32_t> codes(keys.count());
  store_argument(info)->start_put(uint64_argument(info[1], "client"), keys.view(), sizes.data(), config.view(), codes.data());
  return typed_array(info.Env(), codes);
}

/// storeWritePut(store, client, keyBytes, keyOffsets, addresses, sizes, rowOffsets, targets) -> bytes or codes
Napi::Value write(const Napi::CallbackInfo& info) {
  const OwnedKeys keys(info[2], info[3]);
  const OwnedSegments segments(info[4], info[5], info[6], keys.count());
  const auto targets = copied_array<std::uint64_t>(info[7], "targets");
  if (targets.size() != segments.addresses.size()) throw bad_argument(info.Env(), "targets", "as many as addresses");
  std::vector<std::int64_t> codes(keys.count());
  store_argument(info)->write_put(uint64_argument(info[1], "client"), keys.view(), segments.view(), targets.data(), {}, codes.data());
  return typed_array(info.Env(), codes);
}

/// storeEndPut(store, client, keyBytes, keyOffsets) -> codes
Napi::Value end(const Napi::CallbackInfo& info) {
  const OwnedKeys keys(info[2], info[3]);
  std::vector<std::int32_t> codes(keys.count());
  store_argument(info)->end_put(uint64_argument(info[1], "client"), keys.view(), codes.data());
  return typed_array(info.Env(), codes);
}

/// storeRevokePut(store, client, keyBytes, keyOffsets) -> codes
Napi::Value revoke(const Napi::CallbackInfo& info) {
  const OwnedKeys keys(info[2], info[3]);
  std::vector<std::int32_t> codes(keys.count());
  store_argument(info)->revoke_put(uint64_argument(info[1], "client"), keys.view(), codes.data());
  return typed_array(info.Env(), codes);
}

}  // namespace

void export_store_sessions(Napi::Env env, Napi::Object exports) {
  exports.Set("storeStartPut", Napi::Function::New(env, start, "storeStartPut"));
  exports.Set("storeWritePut", Napi::Function::New(env, write, "storeWritePut"));
  exports.Set("storeEndPut", Napi::Function::New(env, end, "storeEndPut"));
  exports.Set("storeRevokePut", Napi::Function::New(env, revoke, "storeRevokePut"));
}

}  // namespace mooncake_kv::bindings
