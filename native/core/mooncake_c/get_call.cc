#include "mooncake_c/get_call.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "copy/copy_plan.h"
#include "store/segment_check.h"

namespace mooncake_kv::mooncake_c {

void GetCall::work(Client& client, Staging& staging) {
  const Client::Use use(client);
  if (!use) return answer_all(code::invalid_params);
  judge(use);
  StagedBatch batch(staging.size(), memory_->transfers_a_call);
  for (std::size_t i = 0; i < wanted_.size(); i++) {
    const char* key = keys_[wanted_[i].rows.front()];
    if (batch.add(i, key, wanted_[i].bytes)) continue;
    if (!get(use, staging, batch)) return;
    batch.clear();
    batch.add(i, key, wanted_[i].bytes);
  }
  if (!batch.empty()) get(use, staging, batch);
}

void GetCall::judge(const Client::Use& use) {
  bytes_.resize(keys_.count());
  std::unordered_map<std::string_view, std::size_t> known;
  std::vector<std::size_t> foreign;
  {
    RegionRegistry::Guard guard(memory_->regions);
    for (std::size_t i = 0; i < keys_.count(); i++) {
      const auto bytes = checked_bytes(segments_.view(), i, &guard);
      if (keys_.empty(i)) answer(i, code::object_not_found);
      else if (keys_.cut_off(i)) answer(i, code::invalid_params);
      else if (!bytes) foreign.push_back(i);
      else {
        bytes_[i] = *bytes;
        const auto [entry, is_new] = known.try_emplace(keys_.view(i), wanted_.size());
        if (is_new) wanted_.emplace_back();
        Wanted& wanted = wanted_[entry->second];
        wanted.rows.push_back(i);
        wanted.bytes = std::max(wanted.bytes, *bytes);
      }
    }
  }
  // An object that can't be read has its own code, wherever it was to go.
  for (const std::size_t i : foreign) {
    if (given_up()) return;
    const std::int64_t size = use.library().get_size(use.handle(), keys_[i]);
    answer(i, size < 0 ? size : code::invalid_params);
  }
}

/// False when nobody waits any more.
bool GetCall::get(const Client::Use& use, Staging& staging, StagedBatch& batch) {
  if (const std::int32_t refused = staging.reserve(use, std::max<std::uint64_t>(batch.bytes(), 1)); refused != code::ok) {
    for (std::size_t i = 0; i < batch.count(); i++) answer_wanted(wanted_[batch.item(i)], refused);
    return true;
  }
  std::vector<std::int64_t> sizes(batch.count(), code::internal_error);
  const int result = use.library().batch_get_into(use.handle(), batch.keys(), batch.buffers(staging.data()), batch.sizes(),
                                                  batch.count(), sizes.data());
  if (result != code::ok) std::ranges::fill(sizes, std::min(result, code::internal_error));

  std::vector<std::pair<std::size_t, std::int64_t>> results;
  {
    const Copying copying(*this);
    if (!copying) return false;
    RegionRegistry::Guard guard(memory_->regions);
    CopyPlan plan;
    for (std::size_t i = 0; i < batch.count(); i++)
      for (const std::size_t row : wanted_[batch.item(i)].rows) {
        // More than there is room for was never read.
        const bool possible = sizes[i] <= static_cast<std::int64_t>(wanted_[batch.item(i)].bytes);
        const std::int64_t value = possible ? judge_row(row, sizes[i], guard) : code::internal_error;
        results.emplace_back(row, value);
        if (value < 0) continue;
        const std::uint8_t* from = batch.place(staging.data(), i);
        for (std::uint32_t s = segments_.row_offsets[row]; s < segments_.row_offsets[row + 1]; s++) {
          const std::size_t size = static_cast<std::size_t>(segments_.sizes[s]);
          if (size > 0) plan.add(pointer(segments_.addresses[s]), from, size);
          from += size;
        }
      }
    memory_->engine.run(plan);
  }
  for (const auto& [row, value] : results) answer(row, value);
  return !given_up();
}

/// What a row gets of an object of `size` bytes, or of its code.
std::int64_t GetCall::judge_row(std::size_t row, std::int64_t size, RegionRegistry::Guard& guard) const {
  if (size < 0) return size;
  if (bytes_[row] < static_cast<std::uint64_t>(size)) return code::invalid_params;
  if (bytes_[row] > static_cast<std::uint64_t>(size)) return code::transfer_fail;
  // The memory may have been unregistered since it was judged.
  return checked_bytes(segments_.view(), row, &guard) ? size : code::invalid_params;
}

void GetCall::answer_wanted(const Wanted& wanted, std::int64_t value) {
  for (const std::size_t row : wanted.rows) answer(row, value);
}

}  // namespace mooncake_kv::mooncake_c
