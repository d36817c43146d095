#include "mooncake_c/staged_batch.h"

#include <algorithm>

namespace mooncake_kv::mooncake_c {
namespace {

/// Values start at cache lines.
constexpr std::uint64_t alignment = 64;
/// Mooncake cuts larger values into transfers of this size.
constexpr std::uint64_t transfer_bytes = 16 * 1024 * 1024 - 16;

}  // namespace

bool StagedBatch::add(std::size_t item, const char* key, std::uint64_t bytes) {
  const std::uint64_t start = (end_ + alignment - 1) / alignment * alignment;
  const std::uint64_t transfers = std::max<std::uint64_t>(1, (bytes - 1) / transfer_bytes + 1);
  const bool fits = start <= capacity_ && bytes <= capacity_ - start && transfers <= most_transfers_ - std::min(most_transfers_, transfers_);
  if (!items_.empty() && !fits) return false;
  items_.push_back(item);
  keys_.push_back(key);
  offsets_.push_back(start);
  sizes_.push_back(static_cast<std::size_t>(bytes));
  end_ = start + bytes;
  transfers_ += transfers;
  return true;
}

void** StagedBatch::buffers(std::uint8_t* staging) {
  buffers_.clear();
  for (std::size_t i = 0; i < items_.size(); i++) buffers_.push_back(place(staging, i));
  return buffers_.data();
}

void StagedBatch::clear() {
  items_.clear();
  keys_.clear();
  offsets_.clear();
  sizes_.clear();
  end_ = 0;
  transfers_ = 0;
}

}  // namespace mooncake_kv::mooncake_c
