#include <atomic>
#include <memory>
#include <utility>

#include "handle.h"
#include "store_arguments.h"

namespace mooncake_kv::bindings {
namespace {

/// cancellationCreate() -> handle
Napi::Value create(const Napi::CallbackInfo& info) {
  auto native = std::make_unique<CancellationHandle>();
  native->flag = std::make_shared<std::atomic<bool>>(false);
  return Handle<CancellationHandle>::wrap(info.Env(), std::move(native));
}

/// cancellationCancel(handle): calls that have it end as those whose deadline came. For good.
Napi::Value cancel(const Napi::CallbackInfo& info) {
  Handle<CancellationHandle>::unwrap(info[0]).flag->store(true, std::memory_order_relaxed);
  return info.Env().Undefined();
}

}  // namespace

void export_cancellation(Napi::Env env, Napi::Object exports) {
  exports.Set("cancellationCreate", Napi::Function::New(env, create, "cancellationCreate"));
  exports.Set("cancellationCancel", Napi::Function::New(env, cancel, "cancellationCancel"));
}

}  // namespace mooncake_kv::bindings
