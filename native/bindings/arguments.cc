#include "arguments.h"

#include <algorithm>

namespace mooncake_kv::bindings {

Napi::Error native_error(Napi::Env env, const std::string& message) {
  Napi::Error error = Napi::Error::New(env, message);
  error.Set("code", Napi::String::New(env, "ERR_NATIVE"));
  return error;
}

Napi::Error bad_argument(Napi::Env env, const std::string& what, const std::string& expected) {
  return native_error(env, what + " must be " + expected);
}

std::uint64_t uint64_argument(const Napi::Value& value, const char* name) {
  if (value.IsBigInt()) {
    bool lossless = false;
    const std::uint64_t whole = value.As<Napi::BigInt>().Uint64Value(&lossless);
    if (lossless) return whole;
  } else if (value.IsNumber()) {
    const double number = value.As<Napi::Number>().DoubleValue();
    if (number >= 0 && number <= 9007199254740991.0 && number == static_cast<double>(static_cast<std::uint64_t>(number)))
      return static_cast<std::uint64_t>(number);
  }
  throw bad_argument(value.Env(), name, "a whole number from 0 to 2^64 - 1, as bigint or as safe integer");
}

OwnedKeys::OwnedKeys(const Napi::Value& bytes, const Napi::Value& offsets)
    : bytes(copied_array<std::uint8_t>(bytes, "keyBytes")), offsets(copied_array<std::uint32_t>(offsets, "keyOffsets")) {
  if (this->offsets.empty() || !std::ranges::is_sorted(this->offsets) || this->offsets.back() > this->bytes.size())
    throw bad_argument(bytes.Env(), "keyOffsets", "one more than there are keys, never falling and inside keyBytes");
}

OwnedSegments::OwnedSegments(const Napi::Value& addresses, const Napi::Value& sizes, const Napi::Value& row_offsets,
                             std::size_t rows)
    : addresses(copied_array<std::uint64_t>(addresses, "addresses")),
      sizes(copied_array<std::uint64_t>(sizes, "sizes")),
      row_offsets(copied_array<std::uint32_t>(row_offsets, "rowOffsets")) {
  if (this->addresses.size() != this->sizes.size())
    throw bad_argument(sizes.Env(), "sizes", "as many as addresses");
  if (this->row_offsets.size() != rows + 1 || !std::ranges::is_sorted(this->row_offsets) ||
      this->row_offsets.back() > this->sizes.size())
    throw bad_argument(sizes.Env(), "rowOffsets", "one more than there are keys, never falling and inside the segments");
}

}  // namespace mooncake_kv::bindings
