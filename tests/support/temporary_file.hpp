// A file that dies with the test.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace vramd::test {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content = "", const std::string& suffix = "") {
    path_ = (std::filesystem::temp_directory_path() / ("vramd-test-XXXXXX" + suffix)).string();
    const int fd = ::mkstemps(path_.data(), static_cast<int>(suffix.size()));
    if (fd < 0) throw std::runtime_error("cannot make a temporary file " + path_);
    ::close(fd);
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::string path_;
};

}  // namespace vramd::test
