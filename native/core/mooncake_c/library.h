#pragma once

#include <memory>
#include <string>

#include "../../capi/mooncake_store.h"

namespace mooncake_kv::mooncake_c {

/// Mooncake's C library, loaded at run time: the functions of its `store_c.h` that we use. Once loaded it stays: it has
/// threads of its own, which would run on in memory that is gone.
struct Library {
  /// Loads the library at `path`. Throws std::runtime_error with the reason: that of the system, or the names of all
  /// functions that the library lacks.
  static std::shared_ptr<const Library> load(const std::string& path);

  decltype(&mooncake_store_create) create;
  decltype(&mooncake_store_destroy) destroy;
  decltype(&mooncake_store_setup) setup;
  decltype(&mooncake_store_health_check) health_check;
  decltype(&mooncake_store_batch_put_from) batch_put_from;
  decltype(&mooncake_store_batch_get_into) batch_get_into;
  decltype(&mooncake_store_is_exist) is_exist;
  decltype(&mooncake_store_batch_is_exist) batch_is_exist;
  decltype(&mooncake_store_get_size) get_size;
  decltype(&mooncake_store_get_hostname) get_hostname;
  decltype(&mooncake_store_remove) remove;
  decltype(&mooncake_store_remove_by_regex) remove_by_regex;
  decltype(&mooncake_store_remove_all) remove_all;
  decltype(&mooncake_store_register_buffer) register_buffer;
  decltype(&mooncake_store_unregister_buffer) unregister_buffer;
};

/// Keeps the signal mask of the calling thread: Mooncake's first `create` blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1
/// there, and a thread of its own then takes those signals.
class SignalMaskGuard {
 public:
  SignalMaskGuard();
  ~SignalMaskGuard();
  SignalMaskGuard(const SignalMaskGuard&) = delete;
  SignalMaskGuard& operator=(const SignalMaskGuard&) = delete;

 private:
  struct Mask;
  std::unique_ptr<Mask> mask_;
};

/// From now on, a process that ends while calls hang inside the library ends at once: what the library does at exit
/// would wait for them. To be called after the library has registered its own exit handlers.
void skip_library_exit_while_calls_hang();
/// A call has been given up on (+1), or has come back after all (-1).
void count_hanging_calls(int change);

}  // namespace mooncake_kv::mooncake_c
