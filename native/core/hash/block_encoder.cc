#include "hash/block_encoder.h"

#include <cstring>

namespace mooncake_kv {
namespace {

constexpr std::size_t parent_bytes = 32;

/// Appends to a buffer that is known to be large enough.
class Writer {
 public:
  explicit Writer(std::uint8_t* out) : at_(out) {}

  void byte(unsigned value) { *at_++ = static_cast<std::uint8_t>(value); }
  void bytes(const std::uint8_t* from, std::size_t size) {
    std::memcpy(at_, from, size);
    at_ += size;
  }
  void little_endian(std::uint64_t value, int size) {
    for (int i = 0; i < size; i++) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void big_endian(std::uint64_t value, int size) {
    for (int i = size - 1; i >= 0; i--) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::uint8_t* at() const { return at_; }

 private:
  std::uint8_t* at_;
};

namespace pickle {

constexpr unsigned PROTO = 0x80;
constexpr unsigned FRAME = 0x95;
constexpr unsigned SHORT_BINBYTES = 0x43;
constexpr unsigned MEMOIZE = 0x94;
constexpr unsigned MARK = 0x28;
constexpr unsigned EMPTY_TUPLE = 0x29;
constexpr unsigned TUPLE = 0x74;
constexpr unsigned TUPLE1 = 0x85;  // TUPLE2 and TUPLE3 follow
constexpr unsigned TUPLE3 = 0x87;
constexpr unsigned BININT = 0x4a;
constexpr unsigned BININT1 = 0x4b;
constexpr unsigned BININT2 = 0x4d;
constexpr unsigned LONG1 = 0x8a;
constexpr unsigned NONE = 0x4e;
constexpr unsigned STOP = 0x2e;

void token(Writer& out, std::uint32_t value) {
  if (value <= 0xff) {
    out.byte(BININT1);
    out.byte(value);
  } else if (value <= 0xffff) {
    out.byte(BININT2);
    out.little_endian(value, 2);
  } else if (value < 0x8000'0000) {
    out.byte(BININT);
    out.little_endian(value, 4);
  } else {  // a signed number of five bytes
    out.byte(LONG1);
    out.byte(5);
    out.little_endian(value, 5);
  }
}

void tokens(Writer& out, std::span<const std::uint32_t> values) {
  if (values.empty()) return out.byte(EMPTY_TUPLE);
  if (values.size() > 3) out.byte(MARK);
  for (const std::uint32_t value : values) token(out, value);
  out.byte(values.size() > 3 ? TUPLE : TUPLE1 + static_cast<unsigned>(values.size()) - 1);
  out.byte(MEMOIZE);
}

void block(Writer& out, const BlockView& view) {
  out.byte(PROTO);
  out.byte(5);
  out.byte(FRAME);
  Writer length = out;
  out.little_endian(0, 8);
  std::uint8_t* const body = out.at();
  out.byte(SHORT_BINBYTES);
  out.byte(parent_bytes);
  out.bytes(view.parent, parent_bytes);
  out.byte(MEMOIZE);
  tokens(out, view.tokens);
  if (view.extras.empty()) out.byte(NONE);
  else out.bytes(view.extras.data(), view.extras.size());
  out.byte(TUPLE3);
  out.byte(MEMOIZE);
  out.byte(STOP);
  length.little_endian(static_cast<std::uint64_t>(out.at() - body), 8);
}

}  // namespace pickle

namespace cbor {

// Major types, in the upper three bits of a head.
constexpr unsigned UNSIGNED = 0x00;
constexpr unsigned BYTES = 0x40;
constexpr unsigned ARRAY = 0x80;
constexpr unsigned NULL_VALUE = 0xf6;

/// The shortest head that carries `value`.
void head(Writer& out, unsigned major, std::uint64_t value) {
  if (value < 24) {
    out.byte(major | static_cast<unsigned>(value));
  } else if (value <= 0xff) {
    out.byte(major | 24);
    out.byte(static_cast<unsigned>(value));
  } else if (value <= 0xffff) {
    out.byte(major | 25);
    out.big_endian(value, 2);
  } else if (value <= 0xffff'ffff) {
    out.byte(major | 26);
    out.big_endian(value, 4);
  } else {
    out.byte(major | 27);
    out.big_endian(value, 8);
  }
}

void block(Writer& out, const BlockView& view) {
  head(out, ARRAY, 3);
  head(out, BYTES, parent_bytes);
  out.bytes(view.parent, parent_bytes);
  head(out, ARRAY, view.tokens.size());
  for (const std::uint32_t value : view.tokens) head(out, UNSIGNED, value);
  if (view.extras.empty()) out.byte(NULL_VALUE);
  else out.bytes(view.extras.data(), view.extras.size());
}

}  // namespace cbor
}  // namespace

std::size_t encoded_bytes_at_most(std::size_t tokens, std::size_t extras) {
  // Either format: under 64 bytes around the tokens, at most 7 a token.
  return 64 + tokens * 7 + extras;
}

std::size_t encode_block(BlockFormat format, const BlockView& block, std::uint8_t* out) {
  Writer writer(out);
  if (format == BlockFormat::pickle) pickle::block(writer, block);
  else cbor::block(writer, block);
  return static_cast<std::size_t>(writer.at() - out);
}

}  // namespace mooncake_kv
