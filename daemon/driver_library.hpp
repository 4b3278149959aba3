// libcuda, opened by name; and what it says about the devices.
#pragma once

#include <string>
#include <vector>

#include "allocator/base/units.hpp"
#include "allocator/driver/driver.hpp"
#include "allocator/protocol/messages.hpp"
#include "daemon/trouble.hpp"

namespace vramd {

struct DeviceFacts {
  CUdevice handle = 0;
  std::uint32_t index = 0;
  protocol::Uuid uuid;
  std::string uuid_text;  // "GPU-xxxxxxxx-xxxx-..."
  std::string name;
  std::string pci_bus_id;
  Bytes total;
  bool virtual_memory = false;  // cuMemCreate and its kin work: chunks are possible
  bool exclusive = false;       // compute mode EXCLUSIVE_PROCESS: a context of ours would make every job fail
};

struct OpenDriver {
  Driver calls;
  int version = 0;
  std::vector<DeviceFacts> devices;
};

// Opens the library (never closed: its threads may outlive us), initialises it and reads the facts. `advice`: what to do when
// there is no driver or no GPU.
Try<OpenDriver> open_driver(const std::string& library, const std::string& advice);

}  // namespace vramd
