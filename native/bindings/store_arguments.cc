#include "store_arguments.h"

#include <cmath>

#include "arguments.h"
#include "handle.h"

namespace mooncake_kv::bindings {
namespace {

Napi::Value member(const Napi::Object& object, const char* name) {
  return object.Get(name);
}

std::uint64_t whole(const Napi::Object& object, const char* name, std::uint64_t otherwise) {
  const Napi::Value value = member(object, name);
  return value.IsUndefined() ? otherwise : uint64_argument(value, name);
}

double ratio(const Napi::Object& object, const char* name, double otherwise) {
  const Napi::Value value = member(object, name);
  if (value.IsUndefined()) return otherwise;
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  if (!(number >= 0 && number <= 1)) throw bad_argument(value.Env(), name, "from 0 to 1");
  return number;
}

bool flag(const Napi::Object& object, const char* name, bool otherwise) {
  const Napi::Value value = member(object, name);
  return value.IsUndefined() ? otherwise : value.ToBoolean().Value();
}

}  // namespace

const std::shared_ptr<EmbeddedStore>& store_argument(const Napi::CallbackInfo& info) {
  return Handle<StoreHandle>::unwrap(info[0]).store;
}

StoreOptions store_options(const Napi::Value& value) {
  if (!value.IsObject()) throw bad_argument(value.Env(), "options", "an object with the capacity");
  const Napi::Object object = value.As<Napi::Object>();
  StoreOptions options;
  options.capacity = uint64_argument(member(object, "capacity"), "capacity");
  const std::uint64_t threads = whole(object, "copyThreads", 0);
  if (threads > 64) throw bad_argument(value.Env(), "copyThreads", "from 0 to 64");
  options.copy_threads = static_cast<unsigned>(threads);
  options.lease_ttl_ms = whole(object, "leaseTtlMs", options.lease_ttl_ms);
  options.soft_pin_ttl_ms = whole(object, "softPinTtlMs", options.soft_pin_ttl_ms);
  options.max_soft_pin_ttl_ms = whole(object, "maxSoftPinTtlMs", options.max_soft_pin_ttl_ms);
  options.evict_soft_pinned = flag(object, "evictSoftPinned", options.evict_soft_pinned);
  options.eviction_ratio = ratio(object, "evictionRatio", options.eviction_ratio);
  options.eviction_high_watermark = ratio(object, "evictionHighWatermark", options.eviction_high_watermark);
  options.discard_timeout_ms = whole(object, "discardTimeoutMs", options.discard_timeout_ms);
  options.release_timeout_ms = whole(object, "releaseTimeoutMs", options.release_timeout_ms);
  options.manual_clock = flag(object, "manualClock", false);
  return options;
}

CallOptions call_options(const Napi::CallbackInfo& info, std::size_t first) {
  CallOptions options;
  const Napi::Value deadline_ms = info[first];
  const Napi::Value cancellation = info[first + 1];
  if (!deadline_ms.IsUndefined()) options.deadline = Deadline::after_ms(uint64_argument(deadline_ms, "deadlineMs"));
  if (!cancellation.IsUndefined())
    options.deadline = options.deadline.or_when(Handle<CancellationHandle>::unwrap(cancellation).flag);
  return options;
}

OwnedPutConfig::OwnedPutConfig(const Napi::Value& value) {
  if (value.IsUndefined()) return;
  if (!value.IsObject()) throw bad_argument(value.Env(), "config", "an object");
  const Napi::Object object = value.As<Napi::Object>();
  config_.replica_num = whole(object, "replicaNum", 1);
  config_.hard_pin = flag(object, "hardPin", false);
  config_.soft_pin = flag(object, "softPin", false);
  config_.soft_pin_ttl_ms = whole(object, "softPinTtlMs", 0);
  const Napi::Value groups = member(object, "groups");
  if (groups.IsUndefined()) return;
  if (!groups.IsArray()) throw bad_argument(value.Env(), "groups", "an array of strings");
  const Napi::Array list = groups.As<Napi::Array>();
  groups_.reserve(list.Length());
  for (std::uint32_t i = 0; i < list.Length(); i++) {
    const Napi::Value group = list.Get(i);
    if (!group.IsString()) throw bad_argument(value.Env(), "groups", "an array of strings");
    groups_.push_back(group.As<Napi::String>().Utf8Value());
  }
  config_.groups.emplace(groups_.begin(), groups_.end());
}

}  // namespace mooncake_kv::bindings
