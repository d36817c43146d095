#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "addon.h"
#include "arena_handle.h"
#include "arguments.h"
#include "copy/row_plan.h"
#include "handle.h"
#include "memory/probe.h"
#include "promise_worker.h"

namespace mooncake_kv::bindings {
namespace {

struct CopierHandle {
  static constexpr const char* handle_name = "copier";

  std::shared_ptr<CopyEngine> engine;
};

template <typename Array, typename Element>
Napi::Value typed_array(Napi::Env env, const std::vector<Element>& elements) {
  auto array = Array::New(env, elements.size());
  std::copy(elements.begin(), elements.end(), array.Data());
  return array;
}

/// copierOpen(threads) -> handle
Napi::Value open(const Napi::CallbackInfo& info) {
  const std::uint64_t threads = uint64_argument(info[0], "threads");
  if (threads > 64) throw bad_argument(info.Env(), "threads", "from 0 to 64");
  auto native = std::make_unique<CopierHandle>();
  native->engine = std::make_shared<CopyEngine>(static_cast<unsigned>(threads));
  return Handle<CopierHandle>::wrap(info.Env(), std::move(native));
}

std::vector<MemoryRange> ranges_argument(const Napi::Value& addresses, const Napi::Value& sizes) {
  const auto starts = copied_array<std::uint64_t>(addresses, "rangeAddresses");
  const auto lengths = copied_array<std::uint64_t>(sizes, "rangeSizes");
  if (starts.size() != lengths.size() || !std::ranges::is_sorted(starts))
    throw bad_argument(addresses.Env(), "rangeAddresses", "sorted, and as many as rangeSizes");
  std::vector<MemoryRange> ranges;
  ranges.reserve(starts.size());
  for (std::size_t i = 0; i < starts.size(); i++) ranges.push_back({starts[i], lengths[i]});
  return ranges;
}

/// planRows(rangeAddresses, rangeSizes, addresses, sizes, rowOffsets)
///   -> { codes, bytes, starts, segmentRanges, used }
Napi::Value plan(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return with_native_errors(env, [&]() -> Napi::Value {
    const std::vector<MemoryRange> ranges = ranges_argument(info[0], info[1]);
    const std::size_t offsets = info[4].IsTypedArray() ? info[4].As<Napi::TypedArray>().ElementLength() : 0;
    if (offsets == 0) throw bad_argument(env, "rowOffsets", "a Uint32Array of at least one element");
    const OwnedSegments segments(info[2], info[3], info[4], offsets - 1);
    const RowPlan plan = plan_rows(ranges, segments.view(), offsets - 1);
    Napi::Object result = Napi::Object::New(env);
    result.Set("codes", typed_array<Napi::Int32Array>(env, plan.codes));
    result.Set("bytes", typed_array<Napi::BigUint64Array>(env, plan.bytes));
    result.Set("starts", typed_array<Napi::BigUint64Array>(env, plan.starts));
    result.Set("segmentRanges", typed_array<Napi::Int32Array>(env, plan.segment_ranges));
    result.Set("used", typed_array<Napi::Uint8Array>(env, plan.used));
    return result;
  });
}

/// firstOfEqual(keyBytes, keyOffsets) -> Uint32Array
Napi::Value first(const Napi::CallbackInfo& info) {
  return with_native_errors(info.Env(), [&] {
    const OwnedKeys keys(info[0], info[1]);
    return typed_array<Napi::Uint32Array>(info.Env(), first_of_equal(keys.view()));
  });
}

/// copyRows(copier, arenas, scatter, addresses, sizes, rowOffsets, runs) -> Promise<void>; throws for a closed arena
Napi::Value copy(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::shared_ptr<CopyEngine> engine = Handle<CopierHandle>::unwrap(info[0]).engine;
  if (!info[1].IsArray()) throw bad_argument(env, "arenas", "an array of arena handles");
  const auto list = info[1].As<Napi::Array>();
  // They keep the memory until the copy is done.
  std::vector<std::shared_ptr<Arena>> arenas;
  for (std::uint32_t i = 0; i < list.Length(); i++) arenas.push_back(open_arena(list.Get(i)));
  const CopyDirection direction = info[2].ToBoolean() ? CopyDirection::scatter : CopyDirection::gather;
  auto runs = copied_array<std::uint64_t>(info[6], "runs");
  OwnedSegments segments(info[3], info[4], info[5], runs.size());
  struct Call {
    std::shared_ptr<CopyEngine> engine;
    std::vector<std::shared_ptr<Arena>> arenas;
    CopyDirection direction;
    OwnedSegments segments;
    std::vector<std::uint64_t> runs;
  };
  auto call = std::make_shared<Call>(Call{engine, std::move(arenas), direction, std::move(segments), std::move(runs)});
  return run_async(
      env, "mooncake-kv.copyRows", [call] { copy_rows(*call->engine, call->direction, call->segments.view(), call->runs); },
      [](Napi::Env env) { return env.Undefined(); });
}

/// memoryAccessible(address, bytes) -> Promise<boolean>
Napi::Value accessible(const Napi::CallbackInfo& info) {
  const std::uint64_t address = uint64_argument(info[0], "address");
  const std::uint64_t size = uint64_argument(info[1], "bytes");
  if (size == 0 || size - 1 > UINT64_MAX - address) throw bad_argument(info.Env(), "bytes", "at least 1, and no more than there are behind the address");
  auto answer = std::make_shared<bool>(false);
  return run_async(
      info.Env(), "mooncake-kv.memoryAccessible", [=] { *answer = is_accessible(address, size); },
      [answer](Napi::Env env) { return Napi::Boolean::New(env, *answer); });
}

}  // namespace

void export_copy(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("copierOpen", open);
  add("planRows", plan);
  add("firstOfEqual", first);
  add("copyRows", copy);
  add("memoryAccessible", accessible);
}

}  // namespace mooncake_kv::bindings
