#pragma once

#include <napi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "mooncake_c/call.h"

namespace mooncake_kv::bindings {

/// Brings the answers of calls from threads of ours to the JavaScript thread, as promises. It holds the process open
/// for as long as somebody waits. A call that is given up settles its promise at once with what is known; whatever its
/// thread brings later is dropped. It works until the environment ends, and does nothing after that.
class CallBridge : public std::enable_shared_from_this<CallBridge> {
 public:
  /// What the promise gives, made of a call that has ended or was given up.
  using Result = std::function<Napi::Value(Napi::Env, const mooncake_c::Call&)>;

  static std::shared_ptr<CallBridge> make(Napi::Env env);

  /// Notes a call, under a number that the caller chose; its promise.
  Napi::Value expect(Napi::Env env, std::uint32_t id, std::shared_ptr<mooncake_c::Call> call, Result result);
  /// From any thread: the call has ended.
  void ended(std::uint32_t id);
  /// On the JavaScript thread: the call that nobody waits for any more, or null when there is no such call.
  std::shared_ptr<mooncake_c::Call> give_up(Napi::Env env, std::uint32_t id);
  /// On the JavaScript thread: no more calls.
  void close();

 private:
  struct Pending {
    std::shared_ptr<mooncake_c::Call> call;
    Result result;
    napi_deferred deferred;
  };

  static void deliver(napi_env env, napi_value, void*, void* data);
  void settle(Napi::Env env, std::uint32_t id);

  std::mutex mutex_;
  napi_threadsafe_function function_ = nullptr;  // null once closed; guarded by the mutex
  std::unordered_map<std::uint32_t, Pending> pending_;  // of the JavaScript thread
};

}  // namespace mooncake_kv::bindings
