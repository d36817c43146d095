#include <stdexcept>

#include "mooncake_c/library.h"

namespace mooncake_kv::mooncake_c {

std::shared_ptr<const Library> Library::load(const std::string& path) {
  throw std::runtime_error(path + " can't be loaded: Mooncake has no C library for this platform");
}

struct SignalMaskGuard::Mask {};

SignalMaskGuard::SignalMaskGuard() = default;
SignalMaskGuard::~SignalMaskGuard() = default;

void skip_library_exit_while_calls_hang() {}
void count_hanging_calls(int) {}

}  // namespace mooncake_kv::mooncake_c
