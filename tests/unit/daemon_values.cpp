// Small pure parts: `--sim`, the estimate of stranded bytes, status and metrics of odd values.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/pages.hpp"
#include "daemon/simulation.hpp"
#include "daemon/stranded.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::literals;

namespace {

struct SimFolder {
  SimFolder() {
    char name[] = "/tmp/vramd-test-XXXXXX";
    path = ::mkdtemp(name);
    std::ofstream(path / "libcuda.so.1") << "x";
  }
  ~SimFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("--sim: profile and count") {
  const SimFolder folder;
  const auto two = choose_simulation("rtx-a5000-24gx2", folder.path);
  REQUIRE(two);
  CHECK(two->profile == "rtx-a5000-24g");
  CHECK(two->devices == 2);
  CHECK(two->environment.at("SIM_DEVICES") == "2");
  CHECK(two->environment.at("LD_LIBRARY_PATH") == folder.path.string());
  CHECK(choose_simulation("h200-141g", folder.path)->devices == 1);
  CHECK(choose_simulation("boxx3", folder.path)->profile == "box");
  CHECK(choose_simulation("x", folder.path)->profile == "x");
  CHECK(choose_simulation("a100-80gx", folder.path)->profile == "a100-80gx");
}

TEST_CASE("--sim: what cannot be is refused with an advice") {
  const SimFolder folder;
  CHECK_FALSE(choose_simulation("", folder.path));
  CHECK_FALSE(choose_simulation("a100-80gx0", folder.path));
  CHECK_FALSE(choose_simulation("a100-80gx17", folder.path));
  const auto missing = choose_simulation("a100-80g", folder.path / "nowhere");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().exit_code == kExitRuntime);
  CHECK(missing.error().message.find("--sim-dir") != std::string::npos);
}

TEST_CASE("Stranded: what a dirty release does not free is stranded until it comes back") {
  Stranded stranded(1000_MiB, {600_MiB, 300_MiB});
  stranded.observe({600_MiB, 236_MiB}, 64_MiB);
  CHECK(stranded.bytes() == 64_MiB);
  stranded.observe({632_MiB, 236_MiB});
  CHECK(stranded.bytes() == 32_MiB);
  stranded.observe({700_MiB, 236_MiB});
  CHECK(stranded.bytes() == 0_B);
}

TEST_CASE("Stranded: nothing is stranded when the driver frees at once, or when others take memory") {
  Stranded stranded(1000_MiB, {600_MiB, 300_MiB});
  stranded.observe({664_MiB, 236_MiB}, 64_MiB);
  CHECK(stranded.bytes() == 0_B);
  stranded.observe({100_MiB, 236_MiB});
  CHECK(stranded.bytes() == 0_B);
}

TEST_CASE("Stranded: never more than what somebody else uses") {
  Stranded stranded(1000_MiB, {1000_MiB, 0_MiB});
  stranded.observe({900_MiB, 0_MiB}, 500_MiB);
  CHECK(stranded.bytes() == 100_MiB);
}

TEST_CASE("pages: names of others are shown, never obeyed") {
  Snapshot snapshot;
  SessionSnapshot session;
  session.command = "\xff\xfe\"}\n";
  session.job = std::string("a\0b", 3);
  snapshot.sessions.push_back(session);
  DeviceSnapshot device;
  device.name = "odd \"name\"\n\\";
  snapshot.devices.push_back(device);
  const auto give = [&] { return snapshot; };
  CHECK(answer_page("/api/v1/status", true, give).status == 200);
  CHECK(answer_page("/metrics", true, give).body.find("name=\"odd \\\"name\\\"\\n\\\\\"") != std::string::npos);
  CHECK(answer_page("/-/ready", false, give).status == 503);
  CHECK(answer_page("", true, give).status == 404);
}
