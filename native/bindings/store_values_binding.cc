#include <memory>
#include <utility>
#include <vector>

#include "arguments.h"
#include "codes.h"
#include "handle.h"
#include "promise_worker.h"
#include "store_arguments.h"

namespace mooncake_kv::bindings {
namespace {

/// The bytes of a list of Uint8Arrays, copied: JavaScript may change its arrays as soon as the call has returned.
struct OwnedValues {
  std::vector<std::unique_ptr<std::uint8_t[]>> bytes;
  std::vector<std::uint64_t> addresses;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> row_offsets;

  OwnedValues(const Napi::Value& value, std::size_t count) {
    if (!value.IsArray()) throw bad_argument(value.Env(), "values", "an array of Uint8Arrays");
    const Napi::Array list = value.As<Napi::Array>();
    if (list.Length() != count) throw bad_argument(value.Env(), "values", "as many as there are keys");
    bytes.reserve(count);
    for (std::uint32_t i = 0; i < count; i++) {
      const Napi::HandleScope scope(value.Env());
      const Napi::Value item = list.Get(i);
      if (!item.IsTypedArray() || item.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array)
        throw bad_argument(value.Env(), "values", "an array of Uint8Arrays");
      const auto array = item.As<Napi::Uint8Array>();
      const std::size_t size = array.ByteLength();
      bytes.emplace_back(new std::uint8_t[size]);
      if (size > 0) std::copy_n(array.Data(), size, bytes.back().get());
      addresses.push_back(reinterpret_cast<std::uintptr_t>(bytes.back().get()));
      sizes.push_back(size);
      row_offsets.push_back(i);
    }
    row_offsets.push_back(static_cast<std::uint32_t>(count));
  }

  SegmentBatch view() const { return {addresses.data(), sizes.data(), row_offsets.data()}; }
};

struct PutCall {
  std::shared_ptr<EmbeddedStore> store;
  OwnedKeys keys;
  OwnedValues values;
  OwnedPutConfig config;
  CallOptions options;
  std::vector<std::int32_t> codes;
};

/// (store, keyBytes, keyOffsets, values, config, deadlineMs?, cancellation?) -> Promise<codes>
Napi::Value write(const Napi::CallbackInfo& info, const char* name, bool upsert) {
  OwnedKeys keys(info[1], info[2]);
  const std::size_t count = keys.count();
  auto call = with_native_errors(info.Env(), [&] {
    return std::make_shared<PutCall>(PutCall{store_argument(info), std::move(keys), OwnedValues(info[3], count), OwnedPutConfig(info[4]),
                                             call_options(info, 5), std::vector<std::int32_t>(count)});
  });
  call->options.access = Access::trusted;
  return run_async(
      info.Env(), name,
      [call, upsert] {
        if (upsert) call->store->upsert_from(call->keys.view(), call->values.view(), call->config.view(), call->options, call->codes.data());
        else call->store->put_from(call->keys.view(), call->values.view(), call->config.view(), call->options, call->codes.data());
      },
      [call](Napi::Env env) { return typed_array(env, call->codes); });
}

Napi::Value put(const Napi::CallbackInfo& info) { return write(info, "mooncake-kv.put", false); }
Napi::Value upsert(const Napi::CallbackInfo& info) { return write(info, "mooncake-kv.upsert", true); }

/// The value as a Uint8Array: without a copy where the runtime allows it.
Napi::Value value_array(Napi::Env env, OwnedValue value) {
  const std::size_t size = static_cast<std::size_t>(value.size);
  const auto finalize = [](napi_env, void* data, void*) { delete[] static_cast<std::uint8_t*>(data); };
  napi_value buffer = nullptr;
  const napi_status status = napi_create_external_arraybuffer(env, value.bytes.get(), size, finalize, nullptr, &buffer);
  if (status == napi_ok) {
    value.bytes.release();
    return Napi::Uint8Array::New(env, size, Napi::ArrayBuffer(env, buffer), 0);
  }
  if (status != napi_no_external_buffers_allowed) throw Napi::Error::New(env);
  auto array = Napi::Uint8Array::New(env, size);
  std::copy_n(value.bytes.get(), size, array.Data());
  return array;
}

/// storeGet(store, keyBytes, keyOffsets, deadlineMs?, cancellation?) -> Promise<{ codes, values }>; no value where the code is negative.
Napi::Value get(const Napi::CallbackInfo& info) {
  struct Call {
    std::shared_ptr<EmbeddedStore> store;
    OwnedKeys keys;
    CallOptions options;
    std::vector<std::int64_t> codes;
    std::vector<OwnedValue> values;
  };
  OwnedKeys keys(info[1], info[2]);
  const std::size_t count = keys.count();
  auto call = std::make_shared<Call>(
      Call{store_argument(info), std::move(keys), call_options(info, 3), std::vector<std::int64_t>(count), {}});
  return run_async(
      info.Env(), "mooncake-kv.get",
      [call] { call->store->get(call->keys.view(), call->options, call->codes.data(), call->values); },
      [call](Napi::Env env) -> Napi::Value {
        // What one array of any Node of today can hold; more would end the process.
        constexpr std::uint64_t largest = (std::uint64_t{1} << 32) - 1;
        Napi::Array values = Napi::Array::New(env, call->codes.size());
        for (std::uint32_t i = 0; i < call->values.size(); i++) {
          const Napi::HandleScope scope(env);
          if (!call->values[i].bytes) continue;
          if (call->values[i].size > largest) call->codes[i] = code::invalid_params;
          else values.Set(i, value_array(env, std::move(call->values[i])));
        }
        Napi::Object read = Napi::Object::New(env);
        read.Set("codes", typed_array(env, call->codes));
        read.Set("values", values);
        return read;
      });
}

}  // namespace

void export_store_values(Napi::Env env, Napi::Object exports) {
  exports.Set("storePut", Napi::Function::New(env, put, "storePut"));
  exports.Set("storeUpsert", Napi::Function::New(env, upsert, "storeUpsert"));
  exports.Set("storeGet", Napi::Function::New(env, get, "storeGet"));
}

}  // namespace mooncake_kv::bindings
