#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mooncake_kv::capi {

/// "name=value,name" as pairs; a null pointer gives none.
inline std::vector<std::pair<std::string, std::string>> split_words(const char* text) {
  std::vector<std::pair<std::string, std::string>> words;
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::string_view word = rest.substr(0, end);
    const std::size_t equals = word.find('=');
    words.emplace_back(word.substr(0, equals), equals == std::string_view::npos ? "" : word.substr(equals + 1));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return words;
}

inline std::uint64_t whole_number(std::string_view text, std::uint64_t otherwise) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

inline bool known_metadata_server(std::string_view text) {
  return text == "P2PHANDSHAKE" || text.starts_with("http://") || text.starts_with("https://");
}

}  // namespace mooncake_kv::capi
