#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addon.h"
#include "arguments.h"
#include "hash/block_hash.h"
#include "promise_worker.h"

namespace mooncake_kv::bindings {
namespace {

/// The arguments (format, parent, tokens, blockSize, extras?, extraEnds?, portable?), owned.
struct HashCall {
  BlockFormat format;
  std::vector<std::uint8_t> parent;
  std::vector<std::uint32_t> tokens;
  std::size_t block_size;
  std::vector<std::uint8_t> extras;
  std::vector<std::uint32_t> extra_ends;
  Sha256Path path;
  std::vector<std::uint8_t> hashes;

  explicit HashCall(const Napi::CallbackInfo& info)
      : format(format_argument(info[0])),
        parent(copied_array<std::uint8_t>(info[1], "parent")),
        tokens(copied_array<std::uint32_t>(info[2], "tokens")),
        block_size(uint64_argument(info[3], "blockSize")),
        extras(absent(info[4]) ? std::vector<std::uint8_t>() : copied_array<std::uint8_t>(info[4], "extras")),
        extra_ends(absent(info[5]) ? std::vector<std::uint32_t>() : copied_array<std::uint32_t>(info[5], "extraEnds")),
        path(info[6].ToBoolean() ? Sha256Path::portable : Sha256Path::best) {}

  void run() { hashes = hash_chain({format, parent, tokens, block_size, extras, extra_ends}, path); }

  Napi::Value result(Napi::Env env) const {
    auto array = Napi::Uint8Array::New(env, hashes.size());
    std::copy(hashes.begin(), hashes.end(), array.Data());
    return array;
  }

 private:
  static bool absent(const Napi::Value& value) { return value.IsUndefined() || value.IsNull(); }

  static BlockFormat format_argument(const Napi::Value& value) {
    if (value.IsString()) {
      const std::string name = value.As<Napi::String>();
      if (name == "pickle") return BlockFormat::pickle;
      if (name == "cbor") return BlockFormat::cbor;
    }
    throw bad_argument(value.Env(), "format", "\"pickle\" or \"cbor\"");
  }
};

Napi::Value hash_chain_sync(const Napi::CallbackInfo& info) {
  HashCall call(info);
  return with_native_errors(info.Env(), [&] {
    call.run();
    return call.result(info.Env());
  });
}

Napi::Value hash_chain_async(const Napi::CallbackInfo& info) {
  const auto call = std::make_shared<HashCall>(info);
  return run_async(
      info.Env(), "mooncake-kv.hashChain", [call] { call->run(); },
      [call](Napi::Env env) { return call->result(env); });
}

}  // namespace

void export_hash(Napi::Env env, Napi::Object exports) {
  exports.Set("sha256Path", Napi::String::New(env, sha256_path_name(Sha256Path::best)));
  exports.Set("hashChain", Napi::Function::New(env, hash_chain_sync, "hashChain"));
  exports.Set("hashChainAsync", Napi::Function::New(env, hash_chain_async, "hashChainAsync"));
}

}  // namespace mooncake_kv::bindings
