#include "store/object.h"

#include <cstdint>
#include <cstring>
#include <new>

namespace mooncake_kv {

ObjectRef Object::make(ValuePool& pool, const ValuePool::Slot& slot, std::string_view key, std::uint32_t hash) {
  void* memory = ::operator new(sizeof(Object) + key.size());
  Object* object = new (memory) Object(pool, slot, static_cast<std::uint32_t>(key.size()), hash);
  if (!key.empty()) std::memcpy(static_cast<std::uint8_t*>(memory) + sizeof(Object), key.data(), key.size());
  return ObjectRef(object);
}

void Object::destroy(Object* object) noexcept {
  object->pool_.release({object->bytes_, object->size_, object->node_});
  object->~Object();
  ::operator delete(object);
}

}  // namespace mooncake_kv
