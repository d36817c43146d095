#pragma once

#include <memory>
#include <vector>

#include "mooncake_c/call.h"
#include "mooncake_c/owned_segments.h"
#include "mooncake_c/staged_batch.h"
#include "mooncake_c/terminated_keys.h"

namespace mooncake_kv::mooncake_c {

/// Spreads each object over the segments of its row. Answers: the bytes read; Mooncake's codes; -600 for a key with a NUL,
/// segments that are too small or not registered (of an object that exists), -800 for segments that are too large, -704 for an empty
/// key. A key that occurs several times is read once and fills every row of its size. Nothing is written but whole
/// objects.
class GetCall final : public Call {
 public:
  GetCall(std::shared_ptr<Memory> memory, const KeyBatch& keys, OwnedSegments segments)
      : Call(keys.count), memory_(std::move(memory)), keys_(keys), segments_(std::move(segments)) {}

 protected:
  void work(Client& client, Staging& staging) override;

 private:
  /// An object, and the rows that want it.
  struct Wanted {
    std::vector<std::size_t> rows;
    std::uint64_t bytes = 0;  // of the largest row
  };

  void judge(const Client::Use& use);
  bool get(const Client::Use& use, Staging& staging, StagedBatch& batch);
  std::int64_t judge_row(std::size_t row, std::int64_t size, RegionRegistry::Guard& guard) const;
  void answer_wanted(const Wanted& wanted, std::int64_t value);

  const std::shared_ptr<Memory> memory_;
  const TerminatedKeys keys_;
  const OwnedSegments segments_;
  std::vector<std::uint64_t> bytes_;
  std::vector<Wanted> wanted_;
};

}  // namespace mooncake_kv::mooncake_c
