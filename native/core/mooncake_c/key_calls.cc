#include "mooncake_c/key_calls.h"

#include <algorithm>
#include <vector>

namespace mooncake_kv::mooncake_c {
namespace {

/// Keys of one call of the library: it can be given up on between two.
constexpr std::size_t keys_a_call = 4096;

}  // namespace

void ExistsCall::work(Client& client, Staging&) {
  const Client::Use use(client);
  if (!use) return answer_all(code::invalid_params);
  std::vector<std::size_t> items;
  std::vector<const char*> keys;
  const auto ask = [&] {
    std::vector<int> found(items.size(), code::internal_error);
    const int result = use.library().batch_is_exist(use.handle(), keys.data(), keys.size(), found.data());
    for (std::size_t i = 0; i < items.size(); i++) {
      const int value = result == code::ok ? found[i] : std::min(result, code::internal_error);
      answer(items[i], value > 1 ? code::internal_error : value);
    }
    items.clear();
    keys.clear();
  };
  for (std::size_t i = 0; i < keys_.count() && !given_up(); i++) {
    if (keys_.empty(i)) answer(i, 0);
    else if (keys_.cut_off(i)) answer(i, code::invalid_params);
    else {
      items.push_back(i);
      keys.push_back(keys_[i]);
    }
    if (items.size() == keys_a_call) ask();
  }
  if (!items.empty() && !given_up()) ask();
}

void SizeCall::work(Client& client, Staging&) {
  const Client::Use use(client);
  if (!use) return answer_all(code::invalid_params);
  for (std::size_t i = 0; i < keys_.count() && !given_up(); i++) {
    if (keys_.empty(i)) answer(i, code::object_not_found);
    else if (keys_.cut_off(i)) answer(i, code::invalid_params);
    else answer(i, use.library().get_size(use.handle(), keys_[i]));
  }
}

void RemoveCall::work(Client& client, Staging&) {
  const Client::Use use(client);
  if (!use) return answer_all(code::invalid_params);
  for (std::size_t i = 0; i < keys_.count() && !given_up(); i++) {
    if (keys_.empty(i)) answer(i, code::object_not_found);
    else if (keys_.cut_off(i)) answer(i, code::invalid_params);
    else answer(i, std::min(use.library().remove(use.handle(), keys_[i], force_), code::ok));
  }
}

void RemoveManyCall::work(Client& client, Staging&) {
  const Client::Use use(client);
  if (!use) return answer_all(code::invalid_params);
  answer(0, all_ ? use.library().remove_all(use.handle(), force_)
                 : use.library().remove_by_regex(use.handle(), pattern_.c_str(), force_));
}

void HealthCall::work(Client& client, Staging&) {
  const Client::Use use(client);
  if (!use) return answer_all(1);
  answer(0, use.library().health_check(use.handle()));
  char name[256] = {};
  if (use.library().get_hostname(use.handle(), name, sizeof name - 1) >= 0) {
    const std::lock_guard lock(name_mutex_);
    name_ = name;
  }
  answer(1, use.library().is_exist(use.handle(), "mooncake-kv:health"));
}

}  // namespace mooncake_kv::mooncake_c
