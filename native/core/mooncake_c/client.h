#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory/mapping.h"
#include "mooncake_c/library.h"

namespace mooncake_kv::mooncake_c {

/// What `mooncake_store_setup` takes.
struct SetupConfig {
  std::string local_hostname;
  std::string metadata_server;
  std::uint64_t global_segment_size;
  std::uint64_t local_buffer_size;
  std::string protocol;
  std::string device_name;
  std::string master_server_addr;
};

/// One client of Mooncake, from `create` to `destroy`. It is destroyed when it is closed and no call is inside the
/// library any more, by whichever thread leaves last. Thread-safe.
class Client {
 public:
  Client() = default;
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Loads the library, creates the client and sets it up: 0 or Mooncake's code. It may take minutes. Throws
  /// std::runtime_error when the library can't be loaded.
  std::int32_t set_up(const std::string& library, const SetupConfig& config);

  /// A call inside the library. Without one the client may be destroyed at any time.
  class Use {
   public:
    explicit Use(Client& client);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    /// False when the client is closed, or was never set up.
    explicit operator bool() const { return handle_ != nullptr; }
    mooncake_store_t handle() const { return handle_; }
    const Library& library() const { return *client_.library_; }

   private:
    Client& client_;
    mooncake_store_t handle_;
  };

  /// Lets no further call in. The client is destroyed here when none is inside, which takes a second or two.
  void close();
  /// Whether the client was destroyed within `wait`, or never created.
  bool destroyed(std::chrono::milliseconds wait);

  /// Memory that the library may still use: kept until the client is destroyed.
  void keep(std::unique_ptr<Mapping> memory);

 private:
  mooncake_store_t enter();
  void leave();
  void destroy(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable gone_;
  std::shared_ptr<const Library> library_;
  mooncake_store_t handle_ = nullptr;
  bool ready_ = false;
  bool closing_ = false;
  bool destroying_ = false;
  std::uint32_t inside_ = 0;
  std::vector<std::unique_ptr<Mapping>> kept_;
};

}  // namespace mooncake_kv::mooncake_c
