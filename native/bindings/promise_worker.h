#pragma once

#include <napi.h>

#include <functional>

namespace mooncake_kv::bindings {

/// Runs `work` on a thread of libuv's pool, then `result` on the JavaScript thread, and gives the promise of what
/// `result` makes. Whatever `work` or `result` throw rejects the promise with the code ERR_NATIVE.
///
/// Both must own all they use: the environment may be on its way out when `work` ends, and then `result` is not called
/// or its promise is never seen. Node waits for work that has begun before it frees an environment.
Napi::Promise run_async(Napi::Env env, const char* name, std::function<void()> work,
                        std::function<Napi::Value(Napi::Env)> result);

}  // namespace mooncake_kv::bindings
