#include "hash/sha256.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.h"

using namespace mooncake_kv;

static std::string digest(const std::string& text, Sha256Path path) {
  std::vector<std::uint8_t> message(sha256_padded_bytes(text.size()));
  std::memcpy(message.data(), text.data(), text.size());
  std::uint8_t hash[sha256_bytes];
  sha256_in_place(sha256_compress(path), message.data(), text.size(), hash);
  return test::hex(hash, sizeof hash);
}

int main() {
  std::printf("best path: %s\n", sha256_path_name(Sha256Path::best));
  CHECK_EQUAL(std::string(sha256_path_name(Sha256Path::portable)), "portable");
  for (const Sha256Path path : {Sha256Path::best, Sha256Path::portable}) {
    // FIPS 180-4 examples.
    CHECK_EQUAL(digest("", path), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_EQUAL(digest("abc", path), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_EQUAL(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", path),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK_EQUAL(digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", path),
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    CHECK_EQUAL(digest(std::string(1'000'000, 'a'), path), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
  // Every length around the padding's corners: both paths agree.
  std::mt19937_64 random(11);
  for (std::size_t size = 0; size <= 260; size++) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    CHECK_EQUAL(digest(text, Sha256Path::best), digest(text, Sha256Path::portable));
  }
  return test::finish();
}
