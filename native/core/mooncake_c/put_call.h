#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mooncake_c/call.h"
#include "mooncake_c/owned_segments.h"
#include "mooncake_c/staged_batch.h"
#include "mooncake_c/terminated_keys.h"

namespace mooncake_kv::mooncake_c {

/// How the objects of a put are kept.
struct PutConfig {
  std::uint64_t replica_num = 1;
  bool soft_pin = false;
  bool hard_pin = false;
  std::vector<std::string> preferred_segments;
};

/// Joins the segments of each row into one object. Answers: Mooncake's codes; -600 for an empty key, a key with a NUL,
/// no bytes, and memory that is not registered, all without asking the library. Of equal keys the first is put, and the
/// others have its answer.
class PutCall final : public Call {
 public:
  PutCall(std::shared_ptr<Memory> memory, const KeyBatch& keys, OwnedSegments segments, PutConfig config)
      : Call(keys.count), memory_(std::move(memory)), keys_(keys), segments_(std::move(segments)), config_(std::move(config)) {}

 protected:
  void work(Client& client, Staging& staging) override;

 private:
  std::vector<std::size_t> judge();
  bool put(const Client::Use& use, Staging& staging, StagedBatch& batch);
  void settle(std::size_t item, std::int32_t code);

  const std::shared_ptr<Memory> memory_;
  const TerminatedKeys keys_;
  const OwnedSegments segments_;
  const PutConfig config_;
  std::vector<std::uint64_t> bytes_;
  std::vector<std::vector<std::size_t>> equals_;  // by first: the later rows with the same key
};

}  // namespace mooncake_kv::mooncake_c
