#include "daemon/cgroup.hpp"

#include "tests/support/catch.hpp"

using vramd::parse_cgroup;

namespace {
const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kOther = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
}  // namespace

TEST_CASE("cgroup: outside of containers it is the host, whatever the session") {
  CHECK(parse_cgroup("0::/user.slice/user-1000.slice/session-3.scope\n").container == "host");
  CHECK(parse_cgroup("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_1\n").container == "host");
  CHECK(parse_cgroup("0::/user.slice/user-1000.slice/session-3.scope\n").path == "/user.slice/user-1000.slice/session-3.scope");
}

TEST_CASE("cgroup: v2 names containers by their scope") {
  CHECK(parse_cgroup("0::/system.slice/docker-" + kId + ".scope\n").container == "docker-" + kId);
  CHECK(parse_cgroup("0::/machine.slice/libpod-" + kId + ".scope/container\n").container == "libpod-" + kId);
  CHECK(parse_cgroup("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-" + kId +
                     ".scope\n")
            .container == "cri-containerd-" + kId);
  CHECK(parse_cgroup("0::/kubepods.slice/crio-" + kId + ".scope\n").container == "crio-" + kId);
  CHECK(parse_cgroup("0::/lxc.payload.web/init.scope\n").container == "lxc-web");
}

TEST_CASE("cgroup: v1 names containers by folders") {
  CHECK(parse_cgroup("9:memory:/docker/" + kId + "\n8:pids:/docker/" + kId + "\n").container == "docker-" + kId);
  CHECK(parse_cgroup("4:memory:/kubepods/burstable/pod12-34/" + kId + "\n").container == "kubepods-" + kId);
  CHECK(parse_cgroup("4:memory:/lxc/box\n").container == "lxc-box");
  CHECK(parse_cgroup("4:memory:/a/b\n1:cpu:/\n").path == "/a/b");
}

TEST_CASE("cgroup: a hybrid host is read in both versions") {
  const auto place = parse_cgroup("4:memory:/docker/" + kId + "\n1:cpu:/\n0::/\n");
  CHECK(place.container == "docker-" + kId);
  CHECK(place.path == "/docker/" + kId);
  CHECK(parse_cgroup("4:memory:/docker/" + kOther + "\n0::/system.slice/docker-" + kId + ".scope\n").container ==
        "docker-" + kId);
}

TEST_CASE("cgroup: the outermost container counts") {
  CHECK(parse_cgroup("0::/system.slice/docker-" + kId + ".scope/docker/" + kOther + "\n").container == "docker-" + kId);
}

TEST_CASE("cgroup: what only looks like a container is none") {
  CHECK(parse_cgroup("0::/system.slice/crio-conmon-" + kId + ".scope\n").container == "host");
  CHECK(parse_cgroup("0::/system.slice/docker.service\n").container == "host");
  CHECK(parse_cgroup("0::/system.slice/docker-proxy.scope\n").container == "host");
  CHECK(parse_cgroup("0::/user.slice/" + kId + "\n").container == "host");
}

TEST_CASE("cgroup: broken texts are the host") {
  for (const std::string text : {"", "\n\n", "0", "0:", "::", "0::", "nonsense", ":::::"})
    CHECK(parse_cgroup(text).container == "host");
  CHECK(parse_cgroup("0::/with:colon/docker-" + kId + ".scope").container == "docker-" + kId);
}
