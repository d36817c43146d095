#pragma once

#include <string_view>

namespace mooncake_kv::capi {

/// What the real library does to its host and ours does only on request, so that a host can test its guards. Words of
/// MOONCAKE_KV_IMITATE, separated by commas:
///
///   signals         create blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 in the calling thread
///   abort           an unknown metadata server aborts the process, and an empty master address kills it by SIGSEGV
///   limit           more than 2,048 items of one batch: the rest get -800
///   setup-delay=MS  setup takes so long
///   delay=MS        every later call takes so long
///   unreachable     every call after setup fails with -900
class Imitation {
 public:
  static const Imitation& get();

  bool signals = false;
  bool abort = false;
  bool limit = false;
  bool unreachable = false;
  unsigned setup_delay_ms = 0;
  unsigned delay_ms = 0;

  void on_create() const;
  /// Ends the process for strings that end Mooncake's.
  void on_setup(std::string_view metadata_server, std::string_view master) const;
  void on_call() const;
  /// How many items of a batch are done.
  static constexpr std::size_t most_items = 2048;

 private:
  explicit Imitation(const char* words);
};

}  // namespace mooncake_kv::capi
