#include <chrono>
#include <memory>
#include <thread>

#include "addon.h"
#include "arguments.h"
#include "handle.h"

#if defined(__unix__)
#include <csignal>
#include <sys/types.h>
#include <sys/wait.h>
#endif

namespace mooncake_kv::bindings {
namespace {

/// A child process that must not outlive whoever started it. When the environment ends, and nobody in it hears of the
/// child's end any more, the child is ended and reaped: a terminated worker thread leaves no zombie.
struct ChildGuard {
  static constexpr const char* handle_name = "child guard";

  int pid = 0;  // 0 once released

  explicit ChildGuard(int child) : pid(child) {}
  ~ChildGuard() {
#if defined(__unix__)
    if (pid < 1) return;
    ::kill(pid, SIGKILL);
    for (int wait = 0; wait < 500 && ::waitpid(pid, nullptr, WNOHANG) == 0; wait++)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
#endif
  }
  ChildGuard(const ChildGuard&) = delete;
  ChildGuard& operator=(const ChildGuard&) = delete;
};

/// childGuard(pid) -> handle
Napi::Value guard(const Napi::CallbackInfo& info) {
  const std::uint64_t pid = uint64_argument(info[0], "pid");
  if (pid < 1 || pid > INT32_MAX) throw bad_argument(info.Env(), "pid", "the number of a process");
  return Handle<ChildGuard>::wrap(info.Env(), std::make_unique<ChildGuard>(static_cast<int>(pid)));
}

/// childRelease(handle): the child has ended, and its number may be somebody else's
Napi::Value release(const Napi::CallbackInfo& info) {
  Handle<ChildGuard>::unwrap(info[0]).pid = 0;
  return info.Env().Undefined();
}

}  // namespace

void export_child(Napi::Env env, Napi::Object exports) {
  exports.Set("childGuard", Napi::Function::New(env, guard, "childGuard"));
  exports.Set("childRelease", Napi::Function::New(env, release, "childRelease"));
}

}  // namespace mooncake_kv::bindings
