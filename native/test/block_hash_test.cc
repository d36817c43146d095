#include "hash/block_hash.h"

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"

using namespace mooncake_kv;

namespace {

std::vector<std::uint8_t> bytes(const std::string& hex) {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < hex.size(); i += 2) out.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return out;
}

// What vLLM gives for the seed "0".
const auto none_pickle = bytes("1973e23848344dc43a988a9b478663803cfffe1243480253f9a3cf004b14aa7c");
const auto none_cbor = bytes("4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e");

struct Extras {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> ends;
};

std::vector<std::uint8_t> chain(BlockFormat format, const std::vector<std::uint32_t>& tokens, std::size_t block_size,
                                const Extras& extras = {}, Sha256Path path = Sha256Path::best) {
  const auto& parent = format == BlockFormat::pickle ? none_pickle : none_cbor;
  return hash_chain({format, parent, tokens, block_size, extras.bytes, extras.ends}, path);
}

std::string hash(const std::vector<std::uint8_t>& hashes, std::size_t i) { return test::hex(hashes.data() + 32 * i, 32); }

std::string encoding(BlockFormat format, const std::vector<std::uint32_t>& tokens, const std::vector<std::uint8_t>& extras = {}) {
  const auto& parent = format == BlockFormat::pickle ? none_pickle : none_cbor;
  std::vector<std::uint8_t> out(encoded_bytes_at_most(tokens.size(), extras.size()));
  const std::size_t size = encode_block(format, {parent.data(), tokens, extras}, out.data());
  CHECK(size <= out.size());
  return test::hex(out.data(), size);
}

void known_chains(Sha256Path path) {
  std::vector<std::uint32_t> e1(32);
  std::iota(e1.begin(), e1.end(), 0u);
  auto hashes = chain(BlockFormat::pickle, e1, 16, {}, path);
  CHECK_EQUAL(hash(hashes, 0), "6358e31578a64b75ebe28cdb99d3beae65de82a2087321dc6ec84ae048faaaa6");
  CHECK_EQUAL(hash(hashes, 1), "3c3c50f324aefbdfbb124dfdc541efac3e94e59c40f4be08afe70601eeca92c8");
  hashes = chain(BlockFormat::cbor, e1, 16, {}, path);
  CHECK_EQUAL(hash(hashes, 0), "d830de3d42c00f25a2949b5d12d98642664a44872c1614c5b0147556276afc9c");
  CHECK_EQUAL(hash(hashes, 1), "fedd9e4abebebbe6f6cf96b682f08d316063fe2f22a5c552192dd62904fcccac");

  const std::vector<std::uint32_t> e2 = {1, 256, 65536, 151643, 0, 255, 65535, 2147483647};
  hashes = chain(BlockFormat::pickle, e2, 4, {}, path);
  CHECK_EQUAL(hash(hashes, 0), "c8f3cd88a89e8e28a1e4e19359dfedccfcc8a963622028770fae5a0b33ea3221");
  CHECK_EQUAL(hash(hashes, 1), "55d665df466083f0f661fb17e3e3636dcb2a927f395e10bf35b91c216bb74b1a");
  hashes = chain(BlockFormat::cbor, e2, 4, {}, path);
  CHECK_EQUAL(hash(hashes, 0), "20066355ebe333172b6b2b4db809792de488392dbcd130b5dfea8b6b5d6783d6");
  CHECK_EQUAL(hash(hashes, 1), "67502f7c32c5eba2278e96838634c5c7e50185b7a2f0c4a0f1fc643d54ea7758");

  // LoRA "my-lora" and salt "tenant-a" in the first block, LoRA alone in the second.
  const std::vector<std::uint32_t> e3 = {10, 11, 12, 13, 14, 15, 16, 17};
  Extras extras{bytes("8c076d792d6c6f7261948c0874656e616e742d61948694" "8c076d792d6c6f7261948594"), {23, 35}};
  hashes = chain(BlockFormat::pickle, e3, 4, extras, path);
  CHECK_EQUAL(hash(hashes, 0), "c733a434ceffc5a91f91ca2e189e6b7eff095979010ce3005fdd08f8f37b229a");
  CHECK_EQUAL(hash(hashes, 1), "d04e4556082b0a9e579e47abb5e9c1baf4562cc58fe7d55754ba83fdbf870b33");
  extras = {bytes("82676d792d6c6f72616874656e616e742d61" "81676d792d6c6f7261"), {18, 27}};
  hashes = chain(BlockFormat::cbor, e3, 4, extras, path);
  CHECK_EQUAL(hash(hashes, 0), "f5e25afcd4bec8a9ffb379c79b69b9c5a0ba49cfd101d7f415bcd87c1d760e12");
  CHECK_EQUAL(hash(hashes, 1), "3e543af127b7402905cd5f2df66fce9b606868f1659af1ceb5fa966c3cd1e9e5");
}

void known_encodings() {
  CHECK_EQUAL(encoding(BlockFormat::pickle, {1, 256, 65536, 151643}),
              "800595390000000000000043201973e23848344dc43a988a9b478663803cfffe1243480253f9a3cf004b14aa7c94284b014d00014a00000100"
              "4a5b50020074944e87942e");
  CHECK_EQUAL(encoding(BlockFormat::cbor, {1, 256, 65536, 151643}),
              "8358204e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e84011901001a000100001a0002505bf6");
  const std::string head = "43201973e23848344dc43a988a9b478663803cfffe1243480253f9a3cf004b14aa7c94";
  CHECK_EQUAL(encoding(BlockFormat::pickle, {}).substr(22), head + "294e87942e");
  CHECK_EQUAL(encoding(BlockFormat::pickle, {5}).substr(22), head + "4b0585944e87942e");
  CHECK_EQUAL(encoding(BlockFormat::pickle, {5, 6}).substr(22), head + "4b054b0686944e87942e");
  CHECK_EQUAL(encoding(BlockFormat::pickle, {5, 6, 7}).substr(22), head + "4b054b064b0787944e87942e");
  CHECK_EQUAL(encoding(BlockFormat::pickle, {0x80000000, 0xffffffff}).substr(22),
              head + "8a0500000080008a05ffffffff0086944e87942e");
  CHECK_EQUAL(encoding(BlockFormat::cbor, {23, 24, 255, 65535, 0xffffffff}).substr(70), "85" "17" "1818" "18ff" "19ffff" "1affffffff" "f6");
  CHECK_EQUAL(encoding(BlockFormat::cbor, std::vector<std::uint32_t>(24, 1)).substr(70, 4), "9818");
  CHECK_EQUAL(encoding(BlockFormat::cbor, std::vector<std::uint32_t>(256, 1)).substr(70, 6), "990100");
}

void both_paths_agree() {
  std::vector<std::uint32_t> tokens(2400);
  std::uint32_t value = 1;
  for (auto& token : tokens) token = value = value * 1664525 + 1013904223;
  for (const std::size_t block_size : {1u, 2u, 3u, 5u, 16u, 30u, 100u, 2400u})
    for (const BlockFormat format : {BlockFormat::pickle, BlockFormat::cbor})
      CHECK(chain(format, tokens, block_size) == chain(format, tokens, block_size, {}, Sha256Path::portable));
}

void refuses_shapes_that_do_not_fit() {
  CHECK_EQUAL(chain(BlockFormat::pickle, {}, 16).size(), 0u);
  CHECK_THROWS(std::invalid_argument, chain(BlockFormat::pickle, {1, 2, 3}, 2));
  CHECK_THROWS(std::invalid_argument, chain(BlockFormat::pickle, {1, 2}, 0));
  CHECK_THROWS(std::invalid_argument, chain(BlockFormat::pickle, {1, 2}, 1, {{0x4e}, {}}));
  CHECK_THROWS(std::invalid_argument, chain(BlockFormat::pickle, {1, 2}, 1, {{0x4e}, {1}}));
  CHECK_THROWS(std::invalid_argument, chain(BlockFormat::pickle, {1, 2}, 1, {{0x4e}, {1, 0}}));
  CHECK_THROWS(std::invalid_argument, chain(BlockFormat::pickle, {1, 2}, 1, {{0x4e}, {1, 2}}));
  CHECK_THROWS(std::invalid_argument, chain(BlockFormat::pickle, {1, 2}, 1, {{0x4e, 0x4e}, {0, 1}}));
  const std::vector<std::uint8_t> parent(31);
  const std::vector<std::uint32_t> tokens = {1};
  CHECK_THROWS(std::invalid_argument, hash_chain({BlockFormat::cbor, parent, tokens, 1, {}, {}}));
  // A pickle that Python would cut into frames; CBOR knows no frames.
  const std::vector<std::uint32_t> many(12'000, 70'000);
  CHECK_THROWS(std::length_error, chain(BlockFormat::pickle, many, many.size()));
  CHECK_EQUAL(chain(BlockFormat::cbor, many, many.size()).size(), 32u);
  CHECK_EQUAL(chain(BlockFormat::pickle, std::vector<std::uint32_t>(11'900, 70'000), 11'900).size(), 32u);
  // A block without bytes between two with some has None.
  const Extras none{{0x4e}, {0, 1, 1}};
  CHECK(chain(BlockFormat::pickle, {1, 2, 3}, 1, none) == chain(BlockFormat::pickle, {1, 2, 3}, 1));
}

}  // namespace

int main() {
  known_chains(Sha256Path::best);
  known_chains(Sha256Path::portable);
  known_encodings();
  both_paths_agree();
  refuses_shapes_that_do_not_fit();
  return test::finish();
}
