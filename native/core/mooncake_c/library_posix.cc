#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <stdexcept>

#include "mooncake_c/library.h"

namespace mooncake_kv::mooncake_c {
namespace {

/// Never freed: threads that hang in the library use it until the process is gone.
std::atomic<int> hanging_calls{0};

void end_at_once_if_calls_hang(int status) {
  if (hanging_calls.load() == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

#if defined(__GLIBC__)
void exit_handler(int status, void*) { end_at_once_if_calls_hang(status); }
#endif

class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
  }

  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace

std::shared_ptr<const Library> Library::load(const std::string& path) {
  const SignalMaskGuard guard;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw std::runtime_error(path + " can't be loaded: " + (reason ? reason : "the system does not say why"));
  }
  auto library = std::make_shared<Library>();
  Symbols symbols(handle);
  symbols.find(library->create, "mooncake_store_create");
  symbols.find(library->destroy, "mooncake_store_destroy");
  symbols.find(library->setup, "mooncake_store_setup");
  symbols.find(library->health_check, "mooncake_store_health_check");
  symbols.find(library->batch_put_from, "mooncake_store_batch_put_from");
  symbols.find(library->batch_get_into, "mooncake_store_batch_get_into");
  symbols.find(library->is_exist, "mooncake_store_is_exist");
  symbols.find(library->batch_is_exist, "mooncake_store_batch_is_exist");
  symbols.find(library->get_size, "mooncake_store_get_size");
  symbols.find(library->get_hostname, "mooncake_store_get_hostname");
  symbols.find(library->remove, "mooncake_store_remove");
  symbols.find(library->remove_by_regex, "mooncake_store_remove_by_regex");
  symbols.find(library->remove_all, "mooncake_store_remove_all");
  symbols.find(library->register_buffer, "mooncake_store_register_buffer");
  symbols.find(library->unregister_buffer, "mooncake_store_unregister_buffer");
  if (!symbols.missing().empty())
    throw std::runtime_error(path + " is not Mooncake's C library (built with WITH_STORE_C_SHARED): it lacks " + symbols.missing());
  return library;
}

struct SignalMaskGuard::Mask {
  sigset_t set;
};

SignalMaskGuard::SignalMaskGuard() : mask_(std::make_unique<Mask>()) { pthread_sigmask(SIG_SETMASK, nullptr, &mask_->set); }
SignalMaskGuard::~SignalMaskGuard() { pthread_sigmask(SIG_SETMASK, &mask_->set, nullptr); }

void skip_library_exit_while_calls_hang() {
#if defined(__GLIBC__)
  // Handlers run in reverse: this one before those that the library has registered.
  static std::once_flag once;
  std::call_once(once, [] { on_exit(exit_handler, nullptr); });
#endif
}

void count_hanging_calls(int change) { hanging_calls.fetch_add(change); }

}  // namespace mooncake_kv::mooncake_c
