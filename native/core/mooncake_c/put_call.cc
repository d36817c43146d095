#include "mooncake_c/put_call.h"

#include <string_view>
#include <unordered_map>

#include "copy/copy_plan.h"
#include "store/segment_check.h"

namespace mooncake_kv::mooncake_c {

void PutCall::work(Client& client, Staging& staging) {
  const Client::Use use(client);
  if (!use) return answer_all(code::invalid_params);
  StagedBatch batch(staging.size(), memory_->transfers_a_call);
  for (const std::size_t item : judge()) {
    if (batch.add(item, keys_[item], bytes_[item])) continue;
    if (!put(use, staging, batch)) return;
    batch.clear();
    batch.add(item, keys_[item], bytes_[item]);
  }
  if (!batch.empty()) put(use, staging, batch);
}

/// The rows to put; all others are answered, or have the answer of one of these.
std::vector<std::size_t> PutCall::judge() {
  bytes_.resize(keys_.count());
  equals_.resize(keys_.count());
  std::vector<std::size_t> chosen;
  std::unordered_map<std::string_view, std::size_t> first;
  RegionRegistry::Guard guard(memory_->regions);
  for (std::size_t i = 0; i < keys_.count(); i++) {
    const auto bytes = checked_bytes(segments_.view(), i, &guard);
    if (keys_.empty(i) || keys_.cut_off(i) || bytes.value_or(0) == 0) {
      answer(i, code::invalid_params);
      continue;
    }
    bytes_[i] = *bytes;
    const auto [entry, is_first] = first.try_emplace(keys_.view(i), i);
    if (is_first) chosen.push_back(i);
    else equals_[entry->second].push_back(i);
  }
  return chosen;
}

/// False when nobody waits any more.
bool PutCall::put(const Client::Use& use, Staging& staging, StagedBatch& batch) {
  if (const std::int32_t refused = staging.reserve(use, batch.bytes()); refused != code::ok) {
    for (std::size_t i = 0; i < batch.count(); i++) settle(batch.item(i), refused);
    return true;
  }
  {
    const Copying copying(*this);
    if (!copying) return false;
    RegionRegistry::Guard guard(memory_->regions);
    CopyPlan plan;
    for (std::size_t i = 0; i < batch.count(); i++) {
      // The memory may have been unregistered since it was judged.
      const std::size_t row = batch.item(i);
      if (checked_bytes(segments_.view(), row, &guard) != bytes_[row]) {
        answer_all(code::invalid_params);
        return false;
      }
      std::uint8_t* to = batch.place(staging.data(), i);
      for (std::uint32_t s = segments_.row_offsets[row]; s < segments_.row_offsets[row + 1]; s++) {
        const std::size_t size = static_cast<std::size_t>(segments_.sizes[s]);
        if (size > 0) plan.add(to, pointer(segments_.addresses[s]), size);
        to += size;
      }
    }
    memory_->engine.run(plan);
  }
  // Whoever gave up meanwhile waits for the end of the call, not for the library.
  if (given_up()) return false;
  std::vector<const char*> preferred;
  for (const std::string& segment : config_.preferred_segments) preferred.push_back(segment.c_str());
  const mooncake_replicate_config_t config{static_cast<std::size_t>(config_.replica_num), config_.soft_pin, config_.hard_pin,
                                           preferred.data(), preferred.size()};
  std::vector<int> codes(batch.count(), code::internal_error);
  const int result = use.library().batch_put_from(use.handle(), batch.keys(), batch.buffers(staging.data()), batch.sizes(),
                                                  batch.count(), &config, codes.data());
  for (std::size_t i = 0; i < batch.count(); i++) settle(batch.item(i), result == code::ok ? codes[i] : result);
  return !given_up();
}

void PutCall::settle(std::size_t item, std::int32_t code) {
  // What is no code of Mooncake's must not pass for success.
  const std::int32_t result = code > 0 ? code::internal_error : code;
  answer(item, result);
  for (const std::size_t equal : equals_[item]) answer(equal, result);
}

}  // namespace mooncake_kv::mooncake_c
