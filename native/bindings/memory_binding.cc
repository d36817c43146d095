#include <memory>
#include <utility>

#include "addon.h"
#include "arguments.h"
#include "handle.h"
#include "memory/foreign_copy.h"
#include "memory/probe.h"

namespace mooncake_kv::bindings {
namespace {

/// Memory that somebody else owns and keeps alive.
struct MemoryHandle {
  static constexpr const char* handle_name = "memory";

  std::uint64_t address;
  std::uint64_t size;
};

/// memoryOpen(address, bytes) -> handle, or null for memory that can't be read and written now
Napi::Value open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::uint64_t address = uint64_argument(info[0], "address");
  const std::uint64_t size = uint64_argument(info[1], "bytes");
  if (address == 0 || size == 0 || size - 1 > ~address || !is_accessible(address, size)) return env.Null();
  return Handle<MemoryHandle>::wrap(env, std::make_unique<MemoryHandle>(MemoryHandle{address, size}));
}

/// memoryWrite(memory, offset, bytes)
Napi::Value write(const Napi::CallbackInfo& info) {
  const MemoryHandle& memory = Handle<MemoryHandle>::unwrap(info[0]);
  const std::uint64_t offset = uint64_argument(info[1], "offset");
  if (!info[2].IsTypedArray() || info[2].As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array)
    throw bad_argument(info.Env(), "bytes", "a Uint8Array");
  const auto bytes = info[2].As<Napi::Uint8Array>();
  const std::size_t size = bytes.ByteLength();
  if (offset > memory.size || size > memory.size - offset)
    throw bad_argument(info.Env(), "offset and bytes", "inside the memory");
  if (size > 0 && !copy_to_foreign(memory.address + offset, bytes.Data(), size))
    throw native_error(info.Env(), "the memory can't be written any more");
  return info.Env().Undefined();
}

}  // namespace

void export_memory(Napi::Env env, Napi::Object exports) {
  exports.Set("memoryOpen", Napi::Function::New(env, open, "memoryOpen"));
  exports.Set("memoryWrite", Napi::Function::New(env, write, "memoryWrite"));
}

}  // namespace mooncake_kv::bindings
