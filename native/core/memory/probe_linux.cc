#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "memory/probe.h"

namespace mooncake_kv {

bool is_accessible(std::uint64_t address, std::uint64_t size) {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return true;
  const std::uint64_t last = address + (size - 1);
  std::uint64_t next = address;  // the first byte that no mapping has covered so far
  std::string line;
  // Lines are sorted by address: "start-end rwxp offset device inode path".
  while (std::getline(maps, line)) {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, access) != 3) continue;
    if (end <= next) continue;
    if (start > next || access[0] != 'r' || access[1] != 'w') return false;
    if (last < end) return true;
    next = end;
  }
  return false;
}

}  // namespace mooncake_kv
