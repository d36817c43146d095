#include "mooncake_c/client.h"

#include <utility>

#include "codes.h"

namespace mooncake_kv::mooncake_c {

Client::~Client() { close(); }

std::int32_t Client::set_up(const std::string& path, const SetupConfig& config) {
  // `inside_` holds off the end of the client while it is made.
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || library_) return code::invalid_params;
    inside_++;
  }
  struct Leave {
    Client& client;
    ~Leave() { client.leave(); }
  } const leave{*this};
  const SignalMaskGuard mask;
  auto library = Library::load(path);
  mooncake_store_t handle = library->create();
  {
    const std::lock_guard lock(mutex_);
    library_ = library;
    handle_ = handle;
  }
  if (handle == nullptr) return code::internal_error;
  skip_library_exit_while_calls_hang();
  const std::int32_t result = library->setup(
      handle, config.local_hostname.c_str(), config.metadata_server.c_str(), config.global_segment_size,
      config.local_buffer_size, config.protocol.c_str(), config.device_name.c_str(), config.master_server_addr.c_str());
  const std::lock_guard lock(mutex_);
  ready_ = result == code::ok;
  return result;
}

Client::Use::Use(Client& client) : client_(client), handle_(client.enter()) {}

Client::Use::~Use() {
  if (handle_ != nullptr) client_.leave();
}

void Client::close() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  if (inside_ == 0) destroy(lock);
}

bool Client::destroyed(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  return gone_.wait_for(lock, wait, [&] { return handle_ == nullptr && inside_ == 0; });
}

void Client::keep(std::unique_ptr<Mapping> memory) {
  const std::lock_guard lock(mutex_);
  if (handle_ != nullptr) kept_.push_back(std::move(memory));
}

mooncake_store_t Client::enter() {
  const std::lock_guard lock(mutex_);
  if (closing_ || !ready_) return nullptr;
  inside_++;
  return handle_;
}

void Client::leave() {
  std::unique_lock lock(mutex_);
  inside_--;
  if (inside_ == 0 && closing_) destroy(lock);
}

void Client::destroy(std::unique_lock<std::mutex>& lock) {
  if (handle_ != nullptr && !destroying_) {
    destroying_ = true;
    lock.unlock();
    library_->destroy(handle_);
    lock.lock();
    handle_ = nullptr;
    kept_.clear();
  }
  gone_.notify_all();
}

}  // namespace mooncake_kv::mooncake_c
