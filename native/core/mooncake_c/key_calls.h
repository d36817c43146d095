#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "mooncake_c/call.h"
#include "mooncake_c/terminated_keys.h"

namespace mooncake_kv::mooncake_c {

/// Loads the library and sets the client up. One answer: 0 or Mooncake's code.
class SetupCall final : public Call {
 public:
  SetupCall(std::string library, SetupConfig config) : Call(1), library_(std::move(library)), config_(std::move(config)) {}

 protected:
  void work(Client& client, Staging&) override { answer(0, client.set_up(library_, config_)); }

 private:
  const std::string library_;
  const SetupConfig config_;
};

/// 1 or 0 a key, or a code. An empty key exists nowhere; one with a NUL can't be asked for (-600).
class ExistsCall final : public Call {
 public:
  explicit ExistsCall(const KeyBatch& keys) : Call(keys.count), keys_(keys) {}

 protected:
  void work(Client& client, Staging&) override;

 private:
  const TerminatedKeys keys_;
};

/// The bytes of each object, or a code.
class SizeCall final : public Call {
 public:
  explicit SizeCall(const KeyBatch& keys) : Call(keys.count), keys_(keys) {}

 protected:
  void work(Client& client, Staging&) override;

 private:
  const TerminatedKeys keys_;
};

/// 0 a key, or a code.
class RemoveCall final : public Call {
 public:
  RemoveCall(const KeyBatch& keys, bool force) : Call(keys.count), keys_(keys), force_(force) {}

 protected:
  void work(Client& client, Staging&) override;

 private:
  const TerminatedKeys keys_;
  const bool force_;
};

/// Removes every object, or every one whose key matches. One answer: how many were removed, or a code.
class RemoveManyCall final : public Call {
 public:
  RemoveManyCall(std::string pattern, bool all, bool force) : Call(1), pattern_(std::move(pattern)), all_(all), force_(force) {}

 protected:
  void work(Client& client, Staging&) override;

 private:
  const std::string pattern_;
  const bool all_;
  const bool force_;
};

/// How the client is. Two answers: what Mooncake's own health check says, and what the master says to a question that is
/// cheap: the health check of a client without a segment stays 0 when the master is dead.
class HealthCall final : public Call {
 public:
  HealthCall() : Call(2) {}
  /// host:port of the client, once it has answered.
  std::string host_name() const {
    const std::lock_guard lock(name_mutex_);
    return name_;
  }

 protected:
  void work(Client& client, Staging&) override;

 private:
  mutable std::mutex name_mutex_;
  std::string name_;
};

}  // namespace mooncake_kv::mooncake_c
