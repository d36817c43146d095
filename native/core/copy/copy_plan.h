#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mooncake_kv {

/// What a call copies: runs of bytes, in order. Adjoining runs become one.
class CopyPlan {
 public:
  struct Run {
    std::uint8_t* to;
    const std::uint8_t* from;
    std::size_t size;
  };

  void add(std::uint8_t* to, const std::uint8_t* from, std::size_t size);

  const std::vector<Run>& runs() const { return runs_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::vector<Run> runs_;
  std::uint64_t bytes_ = 0;
};

}  // namespace mooncake_kv
