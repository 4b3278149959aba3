#include "allocator/driver/driver.hpp"

namespace vramd {

Result<Driver> load_driver(void* (*resolve)(void* context, const char* name), void* context) {
  Driver driver;
#define ENTRY(member, name)                                                           \
  driver.member = reinterpret_cast<decltype(driver.member)>(resolve(context, #name)); \
  if (driver.member == nullptr) return failure(ErrorCode::unsupported, #name);
#include "allocator/driver/entry_points.def"
#undef ENTRY
  return driver;
}

}  // namespace vramd
