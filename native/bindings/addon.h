#pragma once

#include <napi.h>

namespace mooncake_kv::bindings {

/// Each adds the functions of one subject to the exports. The addon keeps nothing outside the objects it gives out,
/// so it may be loaded by several threads, and twice in one process.
void export_arena(Napi::Env env, Napi::Object exports);
void export_copy(Napi::Env env, Napi::Object exports);
void export_store(Napi::Env env, Napi::Object exports);
void export_memory(Napi::Env env, Napi::Object exports);
void export_mooncake_native(Napi::Env env, Napi::Object exports);
void export_hash(Napi::Env env, Napi::Object exports);
void export_child(Napi::Env env, Napi::Object exports);

}  // namespace mooncake_kv::bindings
