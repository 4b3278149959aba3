// Which container a process runs in, from the text of /proc/<pid>/cgroup. Pure.
#pragma once

#include <string>
#include <string_view>

namespace vramd {

struct CgroupPlace {
  std::string path;       // the full path: serves limits only
  std::string container;  // outermost container of the path, such as "docker-<id>"; "host" outside of containers
};

// Understands v1, v2 and hybrid texts. A hybrid host has v1 lines and a `0::/` line that differ: the v2 line
// is asked first, then the others in their order; the first that names a container decides. The path is the
// v2 path, or on v1 and hybrid hosts (where that is "/") the longest of the others.
CgroupPlace parse_cgroup(std::string_view text);

}  // namespace vramd
