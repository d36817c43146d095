#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "addon.h"
#include "arena_handle.h"
#include "arguments.h"
#include "call_bridge.h"
#include "handle.h"
#include "memory/probe.h"
#include "mooncake_c/call_threads.h"
#include "mooncake_c/get_call.h"
#include "mooncake_c/key_calls.h"
#include "mooncake_c/put_call.h"
#include "promise_worker.h"

namespace mooncake_kv::bindings {
namespace {

using namespace mooncake_c;

/// A client of Mooncake's C library as JavaScript holds it.
struct MooncakeHandle {
  static constexpr const char* handle_name = "mooncake store";

  std::shared_ptr<Client> client;
  std::shared_ptr<CallThreads> threads;
  std::shared_ptr<Memory> memory;
  std::shared_ptr<CallBridge> bridge;

  ~MooncakeHandle();
};

/// Closes the client on a thread of its own: destroying one takes a second or two, and may hang.
void close_in_background(std::shared_ptr<Client> client, std::shared_ptr<CallThreads> threads, std::function<void()> done) {
  threads->stop();
  try {
    std::thread([client = std::move(client), done = std::move(done)] {
      client->close();
      // Calls that hang keep the client; the last of them to come back destroys it.
      if (done) done();
    }).detach();
  } catch (const std::system_error&) {
    // The client stays until the process ends.
  }
}

MooncakeHandle::~MooncakeHandle() {
  if (!bridge) return;
  bridge->close();
  close_in_background(client, threads, nullptr);
}

MooncakeHandle& store_argument(const Napi::CallbackInfo& info) { return Handle<MooncakeHandle>::unwrap(info[0]); }

std::uint32_t id_argument(const Napi::Value& value) { return static_cast<std::uint32_t>(uint64_argument(value, "id")); }

std::string text_argument(const Napi::Value& value, const char* name) {
  if (!value.IsString()) throw bad_argument(value.Env(), name, "text");
  const std::string text = value.As<Napi::String>().Utf8Value();
  if (text.find('\0') != std::string::npos) throw bad_argument(value.Env(), name, "text without NUL");
  return text;
}

std::string text_member(const Napi::Object& object, const char* name) { return text_argument(object.Get(name), name); }

mooncake_c::OwnedSegments segments_argument(const Napi::CallbackInfo& info, std::size_t first, std::size_t rows) {
  OwnedSegments checked(info[first], info[first + 1], info[first + 2], rows);
  return {std::move(checked.addresses), std::move(checked.sizes), std::move(checked.row_offsets)};
}

Napi::Value numbers(Napi::Env env, const Call& call) {
  const std::vector<std::int64_t> answers = call.answers();
  auto array = Napi::Int32Array::New(env, answers.size());
  std::ranges::transform(answers, array.Data(), [](std::int64_t answer) { return static_cast<std::int32_t>(answer); });
  return array;
}

Napi::Value sizes(Napi::Env env, const Call& call) {
  const std::vector<std::int64_t> answers = call.answers();
  auto array = Napi::BigInt64Array::New(env, answers.size());
  std::ranges::copy(answers, array.Data());
  return array;
}

Napi::Value start(const Napi::CallbackInfo& info, std::shared_ptr<Call> call, CallBridge::Result result) {
  const MooncakeHandle& store = store_argument(info);
  const std::uint32_t id = id_argument(info[1]);
  const Napi::Value promise = store.bridge->expect(info.Env(), id, call, std::move(result));
  store.threads->post(std::move(call), [bridge = store.bridge, id] { bridge->ended(id); });
  return promise;
}

/// mooncakeOpen(threads, stagingBytes) -> handle
Napi::Value open(const Napi::CallbackInfo& info) {
  const std::uint64_t threads = uint64_argument(info[0], "threads");
  const std::uint64_t staging = uint64_argument(info[1], "stagingBytes");
  if (threads < 1 || threads > 64) throw bad_argument(info.Env(), "threads", "from 1 to 64");
  if (staging < 1) throw bad_argument(info.Env(), "stagingBytes", "at least 1");
  auto store = std::make_unique<MooncakeHandle>();
  with_native_errors(info.Env(), [&] {
    store->client = std::make_shared<Client>();
    store->threads = CallThreads::make(store->client, static_cast<unsigned>(threads), staging);
    store->memory = std::make_shared<Memory>();
    // 1,024 transfers may be queued for one peer.
    store->memory->transfers_a_call = std::max<std::uint64_t>(1, 1024 / threads);
    store->bridge = CallBridge::make(info.Env());
  });
  return Handle<MooncakeHandle>::wrap(info.Env(), std::move(store));
}

/// mooncakeSetup(store, id, library, config) -> Promise<code>
Napi::Value set_up(const Napi::CallbackInfo& info) {
  if (!info[3].IsObject()) throw bad_argument(info.Env(), "config", "an object");
  const Napi::Object object = info[3].As<Napi::Object>();
  SetupConfig config;
  config.local_hostname = text_member(object, "localHostname");
  config.metadata_server = text_member(object, "metadataServer");
  config.global_segment_size = uint64_argument(object.Get("globalSegmentSize"), "globalSegmentSize");
  config.local_buffer_size = uint64_argument(object.Get("localBufferSize"), "localBufferSize");
  config.protocol = text_member(object, "protocol");
  config.device_name = text_member(object, "deviceName");
  config.master_server_addr = text_member(object, "masterServerAddress");
  // The library would crash on the one, and end the process because of the other.
  if (config.master_server_addr.empty()) throw bad_argument(info.Env(), "masterServerAddress", "host:port");
  if (config.metadata_server != "P2PHANDSHAKE" && !config.metadata_server.starts_with("http://"))
    throw bad_argument(info.Env(), "metadataServer", "P2PHANDSHAKE or an address that starts with http://");
  auto call = std::make_shared<SetupCall>(text_argument(info[2], "library"), std::move(config));
  return start(info, std::move(call), [](Napi::Env env, const Call& call) { return Napi::Number::New(env, call.answers()[0]); });
}

/// mooncakeRegisterArena(store, arena, address?, bytes?) -> code
Napi::Value register_arena(const Napi::CallbackInfo& info) {
  const ArenaPart part = arena_part(info, 1);
  return Napi::Number::New(info.Env(), store_argument(info).memory->regions.add(part.address, part.size, part.arena));
}

/// mooncakeRegister(store, address, bytes) -> Promise<code>
Napi::Value register_buffer(const Napi::CallbackInfo& info) {
  const std::uint64_t address = uint64_argument(info[1], "address");
  const std::uint64_t size = uint64_argument(info[2], "bytes");
  auto code = std::make_shared<std::int32_t>(code::invalid_params);
  return run_async(
      info.Env(), "mooncake-kv.mooncakeRegister",
      [memory = store_argument(info).memory, address, size, code] {
        const bool possible = address != 0 && size != 0 && size - 1 <= UINT64_MAX - address;
        if (possible && is_accessible(address, size)) *code = memory->regions.add(address, size);
      },
      [code](Napi::Env env) { return Napi::Number::New(env, *code); });
}

/// mooncakeUnregister(store, address) -> Promise<code>
Napi::Value unregister_buffer(const Napi::CallbackInfo& info) {
  const std::uint64_t address = uint64_argument(info[1], "address");
  auto code = std::make_shared<std::int32_t>(code::internal_error);
  return run_async(
      info.Env(), "mooncake-kv.mooncakeUnregister",
      [memory = store_argument(info).memory, address, code] { *code = memory->regions.remove(address); },
      [code](Napi::Env env) { return Napi::Number::New(env, *code); });
}

/// { replicaNum, softPin, hardPin, preferredSegments }
mooncake_c::PutConfig put_config(const Napi::Value& value) {
  if (!value.IsObject()) throw bad_argument(value.Env(), "config", "an object");
  const Napi::Object object = value.As<Napi::Object>();
  mooncake_c::PutConfig config;
  config.replica_num = uint64_argument(object.Get("replicaNum"), "replicaNum");
  config.soft_pin = object.Get("softPin").ToBoolean();
  config.hard_pin = object.Get("hardPin").ToBoolean();
  const Napi::Value segments = object.Get("preferredSegments");
  if (!segments.IsArray()) throw bad_argument(value.Env(), "preferredSegments", "an array of text");
  const Napi::Array list = segments.As<Napi::Array>();
  for (std::uint32_t i = 0; i < list.Length(); i++)
    config.preferred_segments.push_back(text_argument(list.Get(i), "a preferred segment"));
  return config;
}

/// mooncakePutFrom(store, id, keyBytes, keyOffsets, addresses, sizes, rowOffsets, config) -> Promise<Int32Array>
Napi::Value put_from(const Napi::CallbackInfo& info) {
  const OwnedKeys keys(info[2], info[3]);
  auto call = std::make_shared<PutCall>(store_argument(info).memory, keys.view(), segments_argument(info, 4, keys.count()),
                                        put_config(info[7]));
  return start(info, std::move(call), numbers);
}

/// mooncakeGetInto(store, id, keyBytes, keyOffsets, addresses, sizes, rowOffsets) -> Promise<BigInt64Array>
Napi::Value get_into(const Napi::CallbackInfo& info) {
  const OwnedKeys keys(info[2], info[3]);
  auto call = std::make_shared<GetCall>(store_argument(info).memory, keys.view(), segments_argument(info, 4, keys.count()));
  return start(info, std::move(call), sizes);
}

/// mooncakeExists(store, id, keyBytes, keyOffsets) -> Promise<Int32Array>
Napi::Value exists(const Napi::CallbackInfo& info) {
  return start(info, std::make_shared<ExistsCall>(OwnedKeys(info[2], info[3]).view()), numbers);
}

/// mooncakeSize(store, id, keyBytes, keyOffsets) -> Promise<BigInt64Array>
Napi::Value size(const Napi::CallbackInfo& info) {
  return start(info, std::make_shared<SizeCall>(OwnedKeys(info[2], info[3]).view()), sizes);
}

/// mooncakeRemove(store, id, keyBytes, keyOffsets, force) -> Promise<Int32Array>
Napi::Value remove(const Napi::CallbackInfo& info) {
  return start(info, std::make_shared<RemoveCall>(OwnedKeys(info[2], info[3]).view(), info[4].ToBoolean()), numbers);
}

/// mooncakeRemoveMany(store, id, pattern or undefined for all, force) -> Promise<BigInt64Array of one>
Napi::Value remove_many(const Napi::CallbackInfo& info) {
  const bool all = info[2].IsUndefined();
  std::string pattern = all ? std::string() : text_argument(info[2], "pattern");
  return start(info, std::make_shared<RemoveManyCall>(std::move(pattern), all, info[3].ToBoolean()), sizes);
}

/// mooncakeHealth(store, id) -> Promise<{ health, answer, hostName }>
Napi::Value health(const Napi::CallbackInfo& info) {
  return start(info, std::make_shared<HealthCall>(), [](Napi::Env env, const Call& call) -> Napi::Value {
    Napi::Object object = Napi::Object::New(env);
    object.Set("health", Napi::Number::New(env, call.answers()[0]));
    object.Set("answer", Napi::Number::New(env, call.answers()[1]));
    object.Set("hostName", Napi::String::New(env, static_cast<const HealthCall&>(call).host_name()));
    return object;
  });
}

/// mooncakeGiveUp(store, id): its promise settles now with what is known, -901 for the rest
Napi::Value give_up(const Napi::CallbackInfo& info) {
  const MooncakeHandle& store = store_argument(info);
  if (const auto call = store.bridge->give_up(info.Env(), id_argument(info[1]))) store.threads->lose(*call);
  return info.Env().Undefined();
}

/// mooncakeLost(store) -> how many threads hang in calls that were given up
Napi::Value lost(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(store_argument(info).threads->lost()));
}

/// What closing is to those who wait for it.
class CloseCall final : public Call {
 public:
  CloseCall() : Call(1) {}
  void finish() { answer(0, code::ok); }

 protected:
  void work(Client&, Staging&) override {}
};

/// mooncakeClose(store, id) -> Promise<0, or -901 when it was given up>
Napi::Value close(const Napi::CallbackInfo& info) {
  const MooncakeHandle& store = store_argument(info);
  const std::uint32_t id = id_argument(info[1]);
  auto call = std::make_shared<CloseCall>();
  const Napi::Value promise = store.bridge->expect(
      info.Env(), id, call, [](Napi::Env env, const Call& call) { return Napi::Number::New(env, call.answers()[0]); });
  close_in_background(store.client, store.threads, [client = store.client, bridge = store.bridge, call, id] {
    // While a call hangs inside, the client goes with it, whenever that is.
    while (!call->given_up() && !client->destroyed(std::chrono::milliseconds(50))) {
    }
    call->finish();
    bridge->ended(id);
  });
  return promise;
}

/// mooncakeCloseNow(store, milliseconds) -> whether the client is destroyed; for the end of the process
Napi::Value close_now(const Napi::CallbackInfo& info) {
  const MooncakeHandle& store = store_argument(info);
  const std::uint64_t wait = uint64_argument(info[1], "milliseconds");
  close_in_background(store.client, store.threads, nullptr);
  const bool destroyed = store.client->destroyed(std::chrono::milliseconds(std::min<std::uint64_t>(wait, 60'000)));
  // The library's own handlers at exit would wait for what hangs here.
  if (!destroyed) count_hanging_calls(1);
  return Napi::Boolean::New(info.Env(), destroyed);
}

}  // namespace

void export_mooncake_native(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("mooncakeOpen", open);
  add("mooncakeSetup", set_up);
  add("mooncakeRegisterArena", register_arena);
  add("mooncakeRegister", register_buffer);
  add("mooncakeUnregister", unregister_buffer);
  add("mooncakePutFrom", put_from);
  add("mooncakeGetInto", get_into);
  add("mooncakeExists", exists);
  add("mooncakeSize", size);
  add("mooncakeRemove", remove);
  add("mooncakeRemoveMany", remove_many);
  add("mooncakeHealth", health);
  add("mooncakeGiveUp", give_up);
  add("mooncakeLost", lost);
  add("mooncakeClose", close);
  add("mooncakeCloseNow", close_now);
}

}  // namespace mooncake_kv::bindings
