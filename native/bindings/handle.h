#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "arguments.h"

namespace mooncake_kv::bindings {

/// A native object as JavaScript holds it: an empty object with the native one behind it, and a type tag. Unwrapping
/// anything else throws instead of reading foreign memory; that includes the handles of another copy of the addon.
///
/// `Native` must have `static constexpr const char* handle_name`. It is deleted on the JavaScript thread, by the
/// garbage collector or at the end of the environment; work on other threads must hold what it needs itself.
template <typename Native>
class Handle {
 public:
  static Napi::Object wrap(Napi::Env env, std::unique_ptr<Native> native) {
    Napi::Object object = Napi::Object::New(env);
    object.TypeTag(tag());
    const auto finalize = [](napi_env, void* data, void*) { delete static_cast<Native*>(data); };
    if (napi_wrap(env, object, native.get(), finalize, nullptr, nullptr) != napi_ok) throw Napi::Error::New(env);
    native.release();
    return object;
  }

  static Native& unwrap(const Napi::Value& value) {
    void* data = nullptr;
    if (value.IsObject() && value.As<Napi::Object>().CheckTypeTag(tag()) &&
        napi_unwrap(value.Env(), value, &data) == napi_ok && data != nullptr)
      return *static_cast<Native*>(data);
    throw bad_argument(value.Env(), std::string("the ") + Native::handle_name + " handle", "one that this addon gave out");
  }

 private:
  // The address of a variable of this loaded copy: two copies never take each other's handles.
  static inline char anchor = 0;
  static const napi_type_tag* tag() {
    static const napi_type_tag value = {0x6d6f6f6e63616b65, reinterpret_cast<std::uintptr_t>(&anchor)};
    return &value;
  }
};

}  // namespace mooncake_kv::bindings
