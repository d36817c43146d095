#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "codes.h"
#include "mooncake_c/client.h"
#include "mooncake_c/staging.h"

namespace mooncake_kv::mooncake_c {

/// A call on its way: what it works on, and what is known of its answers. Two threads hold it: one that waits for the
/// answers, and one of the store's own that is inside the library, for as long as that may take. Whoever waits may give
/// up at any time; from then on the other neither reads nor writes the caller's memory, and its answers go nowhere.
class Call {
 public:
  /// Every answer starts as -901: what it is when nobody waits any longer.
  explicit Call(std::size_t answers) : answers_(answers, code::rpc_timeout) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Runs `work`; whatever that throws becomes the error of the call.
  void run(Client& client, Staging& staging);

  /// Ends the call without running it: -600 for everything, as for a store that is not open.
  void refuse() { answer_all(code::invalid_params); }

  /// Gives the call up. False when its memory is being copied at this moment: the call then ends by itself at once.
  bool give_up();
  bool given_up() const;

  /// What is known so far.
  std::vector<std::int64_t> answers() const;
  /// Why the call as a whole failed; empty when it did not.
  std::string error() const;

 protected:
  virtual void work(Client& client, Staging& staging) = 0;

  void answer(std::size_t index, std::int64_t value);
  void answer_all(std::int64_t value);

  /// The time in which the caller's memory is copied: giving up waits for its end, and it does not begin after that.
  class Copying {
   public:
    explicit Copying(Call& call) : call_(call), allowed_(call.begin_copying()) {}
    ~Copying() {
      if (allowed_) call_.end_copying();
    }
    Copying(const Copying&) = delete;
    Copying& operator=(const Copying&) = delete;
    explicit operator bool() const { return allowed_; }

   private:
    Call& call_;
    const bool allowed_;
  };

 private:
  bool begin_copying();
  void end_copying();

  mutable std::mutex mutex_;
  std::vector<std::int64_t> answers_;
  std::string error_;
  bool given_up_ = false;
  bool copying_ = false;
};

}  // namespace mooncake_kv::mooncake_c
