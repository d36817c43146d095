#include "memory/probe.h"

namespace mooncake_kv {

bool is_accessible(std::uint64_t, std::uint64_t) { return true; }

}  // namespace mooncake_kv
