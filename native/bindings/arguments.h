#pragma once

#include <napi.h>

#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include "store/batch.h"

namespace mooncake_kv::bindings {

/// An error with the code that the package uses for misuse of the addon.
Napi::Error native_error(Napi::Env env, const std::string& message);
/// "<what> must be <expected>".
Napi::Error bad_argument(Napi::Env env, const std::string& what, const std::string& expected);

/// What `body` gives; what the core throws becomes a native_error.
template <typename Body>
auto with_native_errors(Napi::Env env, Body body) {
  try {
    return body();
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw native_error(env, error.what());
  }
}

/// A whole number from 0 to 2^64 - 1: a bigint, or a number that is a safe integer.
std::uint64_t uint64_argument(const Napi::Value& value, const char* name);

/// The elements of a Uint8Array, Uint32Array or BigUint64Array. They are copied: whatever JavaScript does to the
/// array later, or does meanwhile from another thread, the call works on what was checked.
template <typename T>
std::vector<T> copied_array(const Napi::Value& value, const char* name) {
  constexpr bool bytes = std::is_same_v<T, std::uint8_t>;
  constexpr bool words = std::is_same_v<T, std::uint32_t>;
  static_assert(bytes || words || std::is_same_v<T, std::uint64_t>);
  constexpr napi_typedarray_type type = bytes ? napi_uint8_array : words ? napi_uint32_array : napi_biguint64_array;
  constexpr const char* expected = bytes ? "a Uint8Array" : words ? "a Uint32Array" : "a BigUint64Array";
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type)
    throw bad_argument(value.Env(), name, expected);
  const auto array = value.As<Napi::TypedArrayOf<T>>();
  const T* first = array.Data();
  return first == nullptr ? std::vector<T>() : std::vector<T>(first, first + array.ElementLength());
}

/// The keys of a call, checked and owned.
struct OwnedKeys {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> offsets;

  OwnedKeys(const Napi::Value& bytes, const Napi::Value& offsets);
  std::size_t count() const { return offsets.size() - 1; }
  KeyBatch view() const { return {bytes.data(), offsets.data(), count()}; }
};

/// The segments of a call for `rows` keys, with checked shapes. Addresses are the store's business.
struct OwnedSegments {
  std::vector<std::uint64_t> addresses;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> row_offsets;

  OwnedSegments(const Napi::Value& addresses, const Napi::Value& sizes, const Napi::Value& row_offsets, std::size_t rows);
  SegmentBatch view() const { return {addresses.data(), sizes.data(), row_offsets.data()}; }
};

}  // namespace mooncake_kv::bindings
