#include "mooncake_c/staging.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "codes.h"

namespace mooncake_kv::mooncake_c {

std::int32_t Staging::reserve(const Client::Use& use, std::uint64_t bytes) {
  if (memory_ && memory_->size() >= bytes) return code::ok;
  release();
  std::unique_ptr<Mapping> memory;
  try {
    memory = std::make_unique<Mapping>(std::max(bytes, wanted_), Mapping::Kind::anonymous);
  } catch (const std::exception&) {
    return code::buffer_overflow;  // the system has no memory in which the value could be staged
  }
  const std::int32_t result = use.library().register_buffer(use.handle(), memory->data(), memory->size());
  if (result == code::ok) memory_ = std::move(memory);
  return result;
}

void Staging::release() {
  if (!memory_) return;
  {
    const Client::Use use(*client_);
    if (use && use.library().unregister_buffer(use.handle(), memory_->data()) == code::ok) memory_.reset();
  }
  if (memory_) client_->keep(std::move(memory_));
  memory_.reset();
}

}  // namespace mooncake_kv::mooncake_c
