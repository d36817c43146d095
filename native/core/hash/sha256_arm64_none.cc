#include "hash/sha256.h"

namespace mooncake_kv::sha256_detail {

// Asking the processor what it can is the system's business; only Linux is asked.
Sha256Compress compress_arm64() { return nullptr; }

}  // namespace mooncake_kv::sha256_detail
