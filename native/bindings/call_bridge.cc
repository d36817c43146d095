#include "call_bridge.h"

#include <exception>
#include <string>
#include <utility>

#include "arguments.h"

namespace mooncake_kv::bindings {
namespace {

/// What crosses to the JavaScript thread.
struct Message {
  std::shared_ptr<CallBridge> bridge;
  std::uint32_t id;
};

}  // namespace

std::shared_ptr<CallBridge> CallBridge::make(Napi::Env env) {
  auto bridge = std::make_shared<CallBridge>();
  auto owner = std::make_unique<std::shared_ptr<CallBridge>>(bridge);
  // The environment may end, and free the function, while calls are still under way.
  const auto finalize = [](napi_env, void* data, void*) {
    const std::unique_ptr<std::shared_ptr<CallBridge>> owner(static_cast<std::shared_ptr<CallBridge>*>(data));
    const std::lock_guard lock((*owner)->mutex_);
    (*owner)->function_ = nullptr;
  };
  const Napi::String name = Napi::String::New(env, "mooncake-kv.mooncakeCall");
  if (napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, owner.get(), finalize, nullptr, deliver,
                                      &bridge->function_) != napi_ok)
    throw Napi::Error::New(env);
  owner.release();
  napi_unref_threadsafe_function(env, bridge->function_);
  return bridge;
}

Napi::Value CallBridge::expect(Napi::Env env, std::uint32_t id, std::shared_ptr<mooncake_c::Call> call, Result result) {
  if (function_ == nullptr) throw native_error(env, "the store is closed");
  if (pending_.contains(id)) throw bad_argument(env, "the id", "new");
  Pending pending{std::move(call), std::move(result), nullptr};
  napi_value promise = nullptr;
  if (napi_create_promise(env, &pending.deferred, &promise) != napi_ok) throw Napi::Error::New(env);
  if (pending_.empty()) napi_ref_threadsafe_function(env, function_);
  pending_.emplace(id, std::move(pending));
  return Napi::Value(env, promise);
}

void CallBridge::ended(std::uint32_t id) {
  auto message = std::make_unique<Message>(Message{shared_from_this(), id});
  const std::lock_guard lock(mutex_);
  if (function_ != nullptr && napi_call_threadsafe_function(function_, message.get(), napi_tsfn_nonblocking) == napi_ok)
    message.release();
}

std::shared_ptr<mooncake_c::Call> CallBridge::give_up(Napi::Env env, std::uint32_t id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return nullptr;
  const std::shared_ptr<mooncake_c::Call> call = found->second.call;
  // Memory that is being copied at this moment is the caller's again in a moment; the call then ends by itself.
  if (call->give_up()) settle(env, id);
  return call;
}

void CallBridge::close() {
  napi_threadsafe_function function = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::swap(function, function_);
  }
  if (function != nullptr) napi_release_threadsafe_function(function, napi_tsfn_abort);
}

void CallBridge::deliver(napi_env env, napi_value, void*, void* data) {
  const std::unique_ptr<Message> message(static_cast<Message*>(data));
  if (env != nullptr) message->bridge->settle(Napi::Env(env), message->id);
}

void CallBridge::settle(Napi::Env env, std::uint32_t id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  {
    const std::lock_guard lock(mutex_);
    if (pending_.empty() && function_ != nullptr) napi_unref_threadsafe_function(env, function_);
  }
  const Napi::HandleScope scope(env);
  const std::string error = pending.call->error();
  try {
    if (error.empty()) napi_resolve_deferred(env, pending.deferred, pending.result(env, *pending.call));
    else napi_reject_deferred(env, pending.deferred, native_error(env, error).Value());
  } catch (const Napi::Error& thrown) {
    napi_reject_deferred(env, pending.deferred, thrown.Value());
  } catch (const std::exception& thrown) {
    napi_reject_deferred(env, pending.deferred, native_error(env, thrown.what()).Value());
  }
}

}  // namespace mooncake_kv::bindings
