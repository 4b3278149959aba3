#pragma once

namespace vramd::conformance {

struct Options {
  bool list = false, help = false;
  const char* json = nullptr;  // file; nullptr: stdout
  const char* name = nullptr;  // --case
  const char* only = nullptr;  // --only
  int device = 0, limit_s = 20;
  int child_fd = -1;  // --child: run --case in this process, record to this descriptor
};

extern const char kUsage[];
// False: says on stderr what is wrong.
bool parse(int argc, char** argv, Options& options);

}  // namespace vramd::conformance
