#include "addon.h"

namespace mooncake_kv::bindings {
namespace {

/// Changes whenever the exports do: src/native/addon.ts expects the same number.
constexpr int binding_version = 3;

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("bindingVersion", Napi::Number::New(env, binding_version));
  exports.Set("packageVersion", Napi::String::New(env, MOONCAKE_KV_VERSION));
  export_arena(env, exports);
  export_copy(env, exports);
  export_store(env, exports);
  export_memory(env, exports);
  export_mooncake_native(env, exports);
  export_hash(env, exports);
  export_child(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(mooncake_kv, init)

}  // namespace mooncake_kv::bindings
