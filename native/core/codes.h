#pragma once

#include <cstdint>

/// The result codes of Mooncake that our C++ code gives, under Mooncake's names; STORE_CODES of the TypeScript package
/// holds the whole table, and a test compares the two. One a line.
namespace mooncake_kv::code {

inline constexpr std::int32_t ok = 0;
inline constexpr std::int32_t internal_error = -1;
inline constexpr std::int32_t buffer_overflow = -10;
inline constexpr std::int32_t no_available_handle = -200;
inline constexpr std::int32_t invalid_params = -600;
inline constexpr std::int32_t illegal_client = -601;
inline constexpr std::int32_t replica_is_not_ready = -703;
inline constexpr std::int32_t object_not_found = -704;
inline constexpr std::int32_t object_already_exists = -705;
inline constexpr std::int32_t object_has_lease = -706;
inline constexpr std::int32_t lease_expired = -707;
inline constexpr std::int32_t object_replica_busy = -714;
inline constexpr std::int32_t transfer_fail = -800;
inline constexpr std::int32_t rpc_fail = -900;
inline constexpr std::int32_t rpc_timeout = -901;

}  // namespace mooncake_kv::code
