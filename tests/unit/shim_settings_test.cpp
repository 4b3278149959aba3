#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "shim/client/settings.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::shim;

namespace {

// What read_settings() says on stderr when only this variable is set.
std::string said_about(const char* variable, const std::string& value) {
  for (const char* name : {"VRAMD_LOG", "VRAMD_MODE", "VRAMD_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT", "VRAMD_JOB"}) ::unsetenv(name);
  ::setenv(variable, value.c_str(), 1);
  const int file = ::memfd_create("stderr", 0), stderr_before = ::dup(STDERR_FILENO);
  REQUIRE(::dup2(file, STDERR_FILENO) == STDERR_FILENO);
  read_settings();
  ::dup2(stderr_before, STDERR_FILENO);
  ::close(stderr_before);
  char text[1024];
  const auto length = ::pread(file, text, sizeof text, 0);
  ::close(file);
  ::unsetenv(variable);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

TEST_CASE("parse_size: what people write") {
  const std::pair<const char*, std::uint64_t> good[] = {
      {"1048576", 1048576}, {"12GiB", 12ull << 30}, {"1.5GiB", 3ull << 29}, {"512MiB", 512ull << 20},
      {"64KiB", 64 << 10},  {"1g", 1ull << 30},     {"1024m", 1ull << 30},  {"2TiB", 2ull << 40}};
  for (auto [text, expected] : good) {
    INFO(text);
    Bytes size;
    REQUIRE(parse_size(text, size));
    CHECK(size.value == expected);
  }
}

TEST_CASE("parse_size: what is no size") {
  for (const char* text : {"", "-1", "GiB", "12GB", "1.GiB", "1e9", "0", "0GiB", " 1GiB", "1GiB ", "99999999999999999999",
                           "18446744073709551615GiB", "12 GiB", "0x10", "75%"}) {
    INFO(text);
    Bytes size;
    CHECK_FALSE(parse_size(text, size));
  }
}

TEST_CASE("read_settings: the environment, with nonsense ignored") {
  ::setenv("VRAMD_LOG", "off", 1);
  ::setenv("VRAMD_MODE", "observe", 1);
  ::setenv("VRAMD_LIMIT", "75%", 1);
  ::setenv("CUDA_DEVICE_MEMORY_LIMIT", "1g", 1);
  ::setenv("VRAMD_SOCKET", "/somewhere/vramd.sock", 1);
  Settings settings = read_settings();
  CHECK(settings.mode == protocol::Mode::observe);
  CHECK(settings.limit_of({1000}) == Bytes{750});
  CHECK(std::string(settings.socket) == "/somewhere/vramd.sock");
  ::setenv("VRAMD_MODE", "fast", 1);
  ::setenv("VRAMD_LIMIT", "-1", 1);
  settings = read_settings();
  CHECK(settings.mode == protocol::Mode::unset);
  CHECK(settings.limit_of({1000}) == Bytes{0});
  ::setenv("VRAMD_LIMIT", "12", 1);  // no unit
  CHECK(read_settings().limit_of({1000}) == Bytes{0});
  ::unsetenv("VRAMD_LIMIT");
  settings = read_settings();
  CHECK(settings.limit_of({1000}) == Bytes{1ull << 30});  // the alias
  ::setenv("CUDA_DEVICE_MEMORY_LIMIT", "4096", 1);
  CHECK(read_settings().limit_of({1000}) == Bytes{4096});
  ::setenv("VRAMD_MODE", "full", 1);  // not built yet
  CHECK(read_settings().mode == protocol::Mode::pool);
  ::setenv("VRAMD_LOG", "warning", 1);
  CHECK(read_settings().log == LogLevel::warn);
  ::setenv("VRAMD_LOG", "off", 1);
  ::setenv("VRAMD_JOB", std::string(100, 'x').c_str(), 1);
  CHECK(std::string(read_settings().job) == std::string(63, 'x'));
}

TEST_CASE("read_settings: a limit without a unit is no number of bytes") {
  for (const char* text : {"12", "1.5", "1048576"}) {
    INFO(text);
    const std::string said = said_about("VRAMD_LIMIT", text);
    CHECK(said.find("VRAMD_LIMIT=" + std::string(text) + " is no size and ignored") != std::string::npos);
    CHECK(said.find("write for example 12GiB") != std::string::npos);
  }
  CHECK(said_about("VRAMD_LIMIT", "7B").empty());
  CHECK(said_about("CUDA_DEVICE_MEMORY_LIMIT", "4096").empty());
}

TEST_CASE("read_settings: what is changed is said once") {
  CHECK(said_about("VRAMD_MODE", "full") == "vramd: warning: VRAMD_MODE=full is not built yet: mode pool\n");
  CHECK(said_about("VRAMD_JOB", std::string(64, 'x')) == "vramd: warning: VRAMD_JOB is cut to 63 bytes\n");
  CHECK(said_about("VRAMD_JOB", std::string(63, 'x')).empty());
  CHECK(said_about("VRAMD_LOG", "warning").empty());
}
