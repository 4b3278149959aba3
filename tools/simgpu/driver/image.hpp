// What the simulated driver needs to know of a module: kernels with their parameters, and global variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace simgpu {

struct Parameter {
  std::uint32_t offset = 0;  // in the packed parameter buffer, bytes
  std::uint32_t size = 0;
};

struct Kernel {
  std::string name;  // mangled
  std::vector<Parameter> parameters;
  int registers = 0;
  std::size_t static_shared = 0;  // bytes
  bool does_nothing = false;      // and so needs no twin
};

struct Global {
  std::string name;
  std::size_t size = 0;
  std::string initial;  // empty = zeros
};

struct Image {
  std::vector<Kernel> kernels;
  std::vector<Global> globals;
};

// Reads a fatbin wrapper (both versions), a fatbin or a cubin, zstd-compressed entries included. Of a fatbin
// with several cubins any one serves: their symbols agree. False with a reason in `error` when there is no
// cubin that can be read (PTX alone, for example).
bool parse_image(const void* data, Image& image, std::string& error);

// PTX text whose kernels do nothing.
bool parse_ptx(std::string_view text, Image& image, std::string& error);

// The same for a fatbin or a cubin whose end is known: nothing outside `bytes` is read, whatever they
// contain.
bool parse_image(std::span<const std::byte> bytes, Image& image, std::string& error);

}  // namespace simgpu
