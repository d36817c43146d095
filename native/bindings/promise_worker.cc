#include "promise_worker.h"

#include <exception>
#include <memory>
#include <utility>

#include "arguments.h"

namespace mooncake_kv::bindings {
namespace {

class PromiseWorker final : public Napi::AsyncWorker {
 public:
  PromiseWorker(Napi::Env env, const char* name, std::function<void()> work,
                std::function<Napi::Value(Napi::Env)> result)
      : AsyncWorker(env, name), work_(std::move(work)), result_(std::move(result)) {}

  /// Queues the work; the worker deletes itself when it is done.
  static Napi::Promise start(std::unique_ptr<PromiseWorker> worker) {
    napi_value promise = nullptr;
    const Napi::Env env = worker->Env();
    if (napi_create_promise(env, &worker->deferred_, &promise) != napi_ok) throw Napi::Error::New(env);
    worker.release()->Queue();
    return {env, promise};
  }

 protected:
  void Execute() override {
    // Whatever leaves a thread of libuv ends the process, and an error without a text would pass for success.
    try {
      work_();
    } catch (const std::exception& error) {
      SetError(*error.what() != '\0' ? error.what() : unknown_reason);
    } catch (...) {
      SetError(unknown_reason);
    }
  }

  void OnOK() override {
    try {
      settle(napi_resolve_deferred, result_(Env()));
    } catch (const Napi::Error& error) {
      settle(napi_reject_deferred, error.Value());
    } catch (const std::exception& error) {
      settle(napi_reject_deferred, native_error(Env(), error.what()).Value());
    }
  }

  void OnError(const Napi::Error& error) override {
    settle(napi_reject_deferred, native_error(Env(), error.Message()).Value());
  }

 private:
  static constexpr const char* unknown_reason = "it failed without a reason";

  // In an environment that ends, settling fails; nobody is left to hear of it.
  void settle(napi_status (*how)(napi_env, napi_deferred, napi_value), napi_value value) { how(Env(), deferred_, value); }

  napi_deferred deferred_ = nullptr;
  std::function<void()> work_;
  std::function<Napi::Value(Napi::Env)> result_;
};

}  // namespace

Napi::Promise run_async(Napi::Env env, const char* name, std::function<void()> work,
                        std::function<Napi::Value(Napi::Env)> result) {
  return PromiseWorker::start(std::make_unique<PromiseWorker>(env, name, std::move(work), std::move(result)));
}

}  // namespace mooncake_kv::bindings
