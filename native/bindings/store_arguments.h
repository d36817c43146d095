#pragma once

#include <napi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "deadline.h"
#include "store/embedded_store.h"

namespace mooncake_kv::bindings {

/// An embedded store as JavaScript holds it.
struct StoreHandle {
  static constexpr const char* handle_name = "store";
  std::shared_ptr<EmbeddedStore> store;
};

/// What cancels calls, as JavaScript holds it. Calls have their own hold on the flag.
struct CancellationHandle {
  static constexpr const char* handle_name = "cancellation";
  CancelFlag flag;
};

/// The store in the first argument of a call.
const std::shared_ptr<EmbeddedStore>& store_argument(const Napi::CallbackInfo& info);

/// An object with any of the options of a store; `capacity` must be there.
StoreOptions store_options(const Napi::Value& value);

/// The arguments (deadlineMs?, cancellation?) from `first` on: milliseconds from now, and a handle.
CallOptions call_options(const Napi::CallbackInfo& info, std::size_t first);

/// { replicaNum?, hardPin?, softPin?, softPinTtlMs?, groups?: string[] }, owned; undefined gives the defaults.
class OwnedPutConfig {
 public:
  explicit OwnedPutConfig(const Napi::Value& value);
  const PutConfig& view() const { return config_; }

 private:
  std::vector<std::string> groups_;
  PutConfig config_;
};

inline Napi::Value typed_array(Napi::Env env, const std::vector<std::int32_t>& codes) {
  auto array = Napi::Int32Array::New(env, codes.size());
  std::copy(codes.begin(), codes.end(), array.Data());
  return array;
}

inline Napi::Value typed_array(Napi::Env env, const std::vector<std::int64_t>& codes) {
  auto array = Napi::BigInt64Array::New(env, codes.size());
  std::copy(codes.begin(), codes.end(), array.Data());
  return array;
}

// Parts of export_store.
void export_cancellation(Napi::Env env, Napi::Object exports);
void export_store_values(Napi::Env env, Napi::Object exports);
void export_store_sessions(Napi::Env env, Napi::Object exports);

}  // namespace mooncake_kv::bindings
