// Handles that the program may pass in: a handle is the object's address, and only registered objects are
// ever followed.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

namespace simgpu {

// Thread-safe. An object lives as long as somebody uses it, also after its handle is gone.
template <class Object>
class Registry {
 public:
  void add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    Object* const key = object.get();
    objects_[key] = std::move(object);
  }

  // nullptr when the handle isn't one.
  std::shared_ptr<Object> find(const void* handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  std::shared_ptr<Object> take(const void* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  template <class Predicate>
  void remove_if(Predicate predicate) {
    const std::lock_guard lock(mutex_);
    std::erase_if(objects_, [&](const auto& item) { return predicate(*item.second); });
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Object>> objects_;
};

// One registry per kind of object, never destroyed.
template <class Object>
Registry<Object>& registry() {
  static Registry<Object>* const instance = new Registry<Object>;
  return *instance;
}

}  // namespace simgpu
