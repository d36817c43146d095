#include "mooncake_store.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"
#include "codes.h"
#include "imitation.h"

#define MOONCAKE_KV_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace mooncake_kv;
using namespace mooncake_kv::capi;

Client* client_of(mooncake_store_t store) { return static_cast<Client*>(store); }

/// Keys and one buffer each, as flat batches.
class Batch {
 public:
  Batch(const char* const* keys, void* const* buffers, const size_t* sizes, const std::vector<std::size_t>& items) {
    for (const std::size_t i : items) {
      const std::string_view key = keys[i];
      bytes_.insert(bytes_.end(), key.begin(), key.end());
      offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
      if (!buffers) continue;
      addresses_.push_back(reinterpret_cast<std::uintptr_t>(buffers[i]));
      sizes_.push_back(sizes[i]);
      rows_.push_back(static_cast<std::uint32_t>(addresses_.size()));
    }
  }
  KeyBatch keys() const { return {bytes_.data(), offsets_.data(), offsets_.size() - 1}; }
  SegmentBatch segments() const { return {addresses_.data(), sizes_.data(), rows_.data()}; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint32_t> offsets_{0};
  std::vector<std::uint64_t> addresses_, sizes_;
  std::vector<std::uint32_t> rows_{0};
};

std::vector<std::size_t> all_of(std::size_t count) {
  std::vector<std::size_t> items(count);
  for (std::size_t i = 0; i < count; i++) items[i] = i;
  return items;
}

CallOptions any_memory() {
  CallOptions call;
  call.access = Access::any;
  call.larger_fits = true;
  return call;
}

PutConfig config_of(const mooncake_replicate_config_t* given) {
  PutConfig config;
  if (!given) return config;
  config.replica_num = given->replica_num;
  config.soft_pin = given->with_soft_pin != 0;
  config.hard_pin = given->with_hard_pin != 0;
  return config;
}

/// Runs a call on the store of a client that is set up; exceptions end here.
template <typename Code, typename Body>
Code on_store(mooncake_store_t handle, Body body) {
  try {
    const auto store = client_of(handle)->store();
    if (!store) return code::invalid_params;
    const Imitation& imitation = Imitation::get();
    imitation.on_call();
    if (imitation.unreachable) return code::rpc_fail;
    return static_cast<Code>(body(*store));
  } catch (const std::exception&) {
    return code::internal_error;
  }
}

/// The same for a batch call, whose items all get the code that keeps it from running.
template <typename Code, typename Body>
int on_batch(mooncake_store_t handle, std::size_t count, Code* results, Body body) {
  const int refused = on_store<int>(handle, [&](EmbeddedStore& store) {
    body(store);
    return code::ok;
  });
  if (refused != code::ok) std::fill_n(results, count, Code{refused});
  return refused == code::internal_error ? code::internal_error : code::ok;
}

/// What a batch does of its items: Mooncake keeps them in a map by key, so the last of equal ones stands for all.
std::map<std::string_view, std::size_t> last_of_equal(const char* const* keys, std::size_t count) {
  std::map<std::string_view, std::size_t> last;
  for (std::size_t i = 0; i < count; i++) last[keys[i]] = i;
  return last;
}

std::size_t items_done(std::size_t count) {
  return Imitation::get().limit ? std::min(count, Imitation::most_items) : count;
}

int put(mooncake_store_t store, const char* key, const void* value, size_t size, const mooncake_replicate_config_t* config) {
  return on_store<int>(store, [&](EmbeddedStore& target) {
    void* buffer = const_cast<void*>(value);
    const Batch batch(&key, &buffer, &size, {0});
    std::int32_t code = code::internal_error;
    target.put_from(batch.keys(), batch.segments(), config_of(config), any_memory(), &code);
    return code;
  });
}

bool any_null(const char* const* keys, std::size_t count) {
  return std::any_of(keys, keys + count, [](const char* key) { return key == nullptr; });
}

bool any_null(void* const* buffers, const size_t* sizes, std::size_t count) {
  for (std::size_t i = 0; i < count; i++)
    if (!buffers[i] && sizes[i] > 0) return true;
  return false;
}

}  // namespace

MOONCAKE_KV_EXPORT mooncake_store_t mooncake_store_create(void) {
  Imitation::get().on_create();
  return new (std::nothrow) Client;
}

MOONCAKE_KV_EXPORT void mooncake_store_destroy(mooncake_store_t store) { delete client_of(store); }

MOONCAKE_KV_EXPORT int mooncake_store_setup(mooncake_store_t store, const char* local_hostname, const char* metadata_server,
                                            uint64_t global_segment_size, uint64_t local_buffer_size, const char* protocol,
                                            const char* device_name, const char* master_server_addr) {
  if (!store || !local_hostname || !metadata_server || !protocol || !device_name || !master_server_addr) return code::internal_error;
  try {
    return client_of(store)->setup(local_hostname, metadata_server, global_segment_size, local_buffer_size, protocol, master_server_addr);
  } catch (const std::exception&) {
    return code::internal_error;
  }
}

MOONCAKE_KV_EXPORT int mooncake_store_init_all(mooncake_store_t store, const char* protocol, const char* device_name,
                                               uint64_t mount_segment_size) {
  return mooncake_store_setup(store, "localhost:12345", "P2PHANDSHAKE", mount_segment_size, std::uint64_t{16} << 20, protocol,
                              device_name, "127.0.0.1:50051");
}

MOONCAKE_KV_EXPORT int mooncake_store_health_check(mooncake_store_t store) {
  if (!store) return code::internal_error;
  return client_of(store)->store() ? 0 : 1;
}

MOONCAKE_KV_EXPORT int mooncake_store_put(mooncake_store_t store, const char* key, const void* value, size_t size,
                                          const mooncake_replicate_config_t* config) {
  if (!store || !key || (!value && size > 0)) return code::internal_error;
  if (client_of(store)->store() && size > client_of(store)->local_buffer()) return code::invalid_params;
  return put(store, key, value, size, config);
}

MOONCAKE_KV_EXPORT int mooncake_store_put_from(mooncake_store_t store, const char* key, void* buffer, size_t size,
                                               const mooncake_replicate_config_t* config) {
  if (!store || !key || (!buffer && size > 0)) return code::internal_error;
  if (size == 0 && client_of(store)->store()) return code::ok;
  return put(store, key, buffer, size, config);
}

MOONCAKE_KV_EXPORT int mooncake_store_batch_put_from(mooncake_store_t store, const char** keys, void** buffers, const size_t* sizes,
                                                     size_t count, const mooncake_replicate_config_t* config, int* results_out) {
  if (!store || !keys || !buffers || !sizes || !results_out) return code::internal_error;
  if (any_null(keys, count) || any_null(buffers, sizes, count)) return code::internal_error;
  return on_batch(store, count, results_out, [&](EmbeddedStore& target) {
    const auto last = last_of_equal(keys, count);
    std::vector<std::size_t> items;
    for (std::size_t i = 0; i < items_done(count); i++)
      if (last.at(keys[i]) == i) items.push_back(i);
    const Batch batch(keys, buffers, sizes, items);
    std::vector<std::int32_t> codes(items.size());
    target.put_from(batch.keys(), batch.segments(), config_of(config), any_memory(), codes.data());
    std::fill_n(results_out, count, code::transfer_fail);
    for (std::size_t n = 0; n < items.size(); n++) results_out[items[n]] = codes[n];
    for (std::size_t i = 0; i < count; i++) results_out[i] = results_out[last.at(keys[i])];
  });
}

MOONCAKE_KV_EXPORT int64_t mooncake_store_get_into(mooncake_store_t store, const char* key, void* buffer, size_t size) {
  if (!store || !key || (!buffer && size > 0)) return code::internal_error;
  return on_store<int64_t>(store, [&](EmbeddedStore& source) {
    const Batch batch(&key, &buffer, &size, {0});
    std::int64_t code = code::internal_error;
    source.get_into(batch.keys(), batch.segments(), any_memory(), &code);
    return code;
  });
}

MOONCAKE_KV_EXPORT int mooncake_store_batch_get_into(mooncake_store_t store, const char** keys, void** buffers, const size_t* sizes,
                                                     size_t count, int64_t* results_out) {
  if (!store || !keys || !buffers || !sizes || !results_out) return code::internal_error;
  if (any_null(keys, count) || any_null(buffers, sizes, count)) return code::internal_error;
  return on_batch(store, count, results_out, [&](EmbeddedStore& source) {
    std::vector<std::int64_t> bytes(count);
    const Batch all(keys, nullptr, nullptr, all_of(count));
    source.size(all.keys(), {}, bytes.data());
    std::map<std::string_view, std::size_t> last;
    for (std::size_t i = 0; i < items_done(count); i++)
      if (bytes[i] >= 0 && sizes[i] >= static_cast<std::uint64_t>(bytes[i])) last[keys[i]] = i;
    std::vector<std::size_t> items;
    for (const auto& [key, i] : last) items.push_back(i);
    std::sort(items.begin(), items.end());
    const Batch batch(keys, buffers, sizes, items);
    std::vector<std::int64_t> codes(items.size());
    source.get_into(batch.keys(), batch.segments(), any_memory(), codes.data());
    for (std::size_t i = 0; i < count; i++) {
      const bool fits = bytes[i] >= 0 && sizes[i] >= static_cast<std::uint64_t>(bytes[i]);
      results_out[i] = bytes[i] < 0 ? bytes[i] : !fits ? code::invalid_params : i < items_done(count) ? bytes[i] : code::transfer_fail;
    }
    for (std::size_t n = 0; n < items.size(); n++) {
      if (codes[n] >= 0) continue;
      for (std::size_t i = 0; i < count; i++)
        if (results_out[i] >= 0 && std::strcmp(keys[i], keys[items[n]]) == 0) results_out[i] = codes[n];
    }
  });
}

MOONCAKE_KV_EXPORT int mooncake_store_is_exist(mooncake_store_t store, const char* key) {
  int result = code::internal_error;
  if (!store || !key) return result;
  const int refused = mooncake_store_batch_is_exist(store, &key, 1, &result);
  return refused == code::ok ? result : refused;
}

MOONCAKE_KV_EXPORT int mooncake_store_batch_is_exist(mooncake_store_t store, const char** keys, size_t count, int* results_out) {
  if (!store || !keys || !results_out || any_null(keys, count)) return code::internal_error;
  return on_batch(store, count, results_out, [&](EmbeddedStore& source) {
    source.exists(Batch(keys, nullptr, nullptr, all_of(count)).keys(), {}, results_out);
  });
}

MOONCAKE_KV_EXPORT int64_t mooncake_store_get_size(mooncake_store_t store, const char* key) {
  if (!store || !key) return code::internal_error;
  return on_store<int64_t>(store, [&](EmbeddedStore& source) {
    std::int64_t bytes = code::internal_error;
    source.size(Batch(&key, nullptr, nullptr, {0}).keys(), {}, &bytes);
    return bytes;
  });
}

MOONCAKE_KV_EXPORT int mooncake_store_get_hostname(mooncake_store_t store, char* buf_out, size_t buf_len) {
  if (!store || !buf_out) return code::internal_error;
  const std::string name = client_of(store)->hostname();
  if (name.size() >= buf_len) return code::internal_error;
  std::memcpy(buf_out, name.c_str(), name.size() + 1);
  return code::ok;
}

MOONCAKE_KV_EXPORT int mooncake_store_remove(mooncake_store_t store, const char* key, int force) {
  if (!store || !key) return code::internal_error;
  return on_store<int>(store, [&](EmbeddedStore& target) {
    std::int32_t code = code::internal_error;
    target.remove(Batch(&key, nullptr, nullptr, {0}).keys(), force != 0, {}, &code);
    return code;
  });
}

MOONCAKE_KV_EXPORT int64_t mooncake_store_remove_by_regex(mooncake_store_t store, const char* pattern, int force) {
  if (!store || !pattern) return code::internal_error;
  return on_store<int64_t>(store, [&](EmbeddedStore& target) { return target.remove_by_regex(pattern, force != 0); });
}

MOONCAKE_KV_EXPORT int64_t mooncake_store_remove_all(mooncake_store_t store, int force) {
  if (!store) return code::internal_error;
  return on_store<int64_t>(store, [&](EmbeddedStore& target) { return target.remove_all(force != 0); });
}

MOONCAKE_KV_EXPORT int mooncake_store_register_buffer(mooncake_store_t store, void* buffer, size_t size) {
  if (!store || !buffer) return code::internal_error;
  return on_store<int>(store, [&](EmbeddedStore&) {
    return client_of(store)->regions().add(reinterpret_cast<std::uintptr_t>(buffer), size);
  });
}

MOONCAKE_KV_EXPORT int mooncake_store_unregister_buffer(mooncake_store_t store, void* buffer) {
  if (!store || !buffer) return code::internal_error;
  return on_store<int>(store, [&](EmbeddedStore&) {
    return client_of(store)->regions().remove(reinterpret_cast<std::uintptr_t>(buffer));
  });
}
