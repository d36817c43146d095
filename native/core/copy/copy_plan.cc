#include "copy/copy_plan.h"

namespace mooncake_kv {

void CopyPlan::add(std::uint8_t* to, const std::uint8_t* from, std::size_t size) {
  if (size == 0) return;
  bytes_ += size;
  if (!runs_.empty()) {
    Run& last = runs_.back();
    if (last.to + last.size == to && last.from + last.size == from) {
      last.size += size;
      return;
    }
  }
  runs_.push_back({to, from, size});
}

}  // namespace mooncake_kv
