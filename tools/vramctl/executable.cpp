#include "tools/vramctl/executable.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "tools/vramctl/arguments.hpp"
#include "tools/vramctl/elf.hpp"

namespace vramd::ctl {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr int kMostInterpreters = 4;  // the kernel stops after so many too

bool is_folder(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

tl::unexpected<NotRunnable> not_executable(const std::string& path) {
  return tl::unexpected(NotRunnable{
      kNotExecutable, path + (is_folder(path) ? " is a folder, not a program" : " is not executable; chmod +x makes it so")});
}

bool runnable(const std::string& path) { return ::access(path.c_str(), X_OK) == 0 && !is_folder(path); }

// The interpreter line of a script without its "#!": "/usr/bin/env python3". Empty when it is no script.
std::string script_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  char start[2] = {};
  if (!file.read(start, 2) || start[0] != '#' || start[1] != '!') return {};
  char buffer[256] = {};
  file.read(buffer, sizeof buffer - 1);
  line = buffer;
  line = line.substr(0, line.find('\n'));
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos ? std::string{} : line.substr(first);
}

std::string first_word(const std::string& line) { return line.substr(0, line.find_first_of(" \t")); }

// Programs that run with other rights than their caller's: the dynamic linker ignores preloads with a path
// there.
std::string other_rights(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return {};
  if ((about.st_mode & S_ISUID) != 0 && about.st_uid != ::getuid()) return "it is setuid";
  if ((about.st_mode & S_ISGID) != 0 && (about.st_mode & S_IXGRP) != 0 && about.st_gid != ::getgid()) return "it is setgid";
  if (::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) return "it has file capabilities";
  return {};
}

}  // namespace

tl::expected<std::string, NotRunnable> find_executable(const std::string& command, const Lookup& environment) {
  if (command.empty()) return tl::unexpected(NotRunnable{kNotFound, "the command is empty"});
  if (command.find('/') != std::string::npos) {
    if (::access(command.c_str(), F_OK) != 0)
      return tl::unexpected(NotRunnable{kNotFound, command + ": " + std::strerror(errno)});
    if (!runnable(command)) return not_executable(command);
    return command;
  }
  const char* path_variable = environment("PATH");
  std::string folders = path_variable != nullptr ? path_variable : kDefaultPath;
  std::string blocked;
  for (std::size_t start = 0; start <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', start), folders.size());
    const std::string folder = folders.substr(start, end - start);
    const std::string candidate = (folder.empty() ? "." : folder) + '/' + command;
    if (runnable(candidate)) return candidate;
    if (blocked.empty() && ::access(candidate.c_str(), F_OK) == 0 && !is_folder(candidate)) blocked = candidate;
    start = end + 1;
  }
  if (!blocked.empty()) return not_executable(blocked);
  return tl::unexpected(NotRunnable{kNotFound, command + " is not in PATH; write its path, or check the spelling"});
}

std::string interpreted_by(const std::string& path) {
  std::string program = path;
  for (int i = 0; i < kMostInterpreters; ++i) {
    const std::string line = script_line(program);
    if (line.empty()) break;
    program = first_word(line);
    const std::size_t argument = line.find_first_not_of(" \t", program.size());
    if (program.ends_with("/env") && argument != std::string::npos) return first_word(line.substr(argument));
  }
  return program;
}

std::vector<std::string> preload_obstacles(const std::string& path) {
  std::vector<std::string> obstacles;
  const auto add = [&](const std::string& reason) {
    obstacles.push_back(path + ": " + reason + ", so vramd has no effect in it");
  };
  std::string program = path;
  for (int i = 0; i < kMostInterpreters; ++i) {
    const std::string next = first_word(script_line(program));
    if (next.empty()) break;
    program = next;
  }
  const std::string who = program == path ? "it" : "its interpreter " + program;
  // Rights of a script's file mean nothing to the kernel; those of the interpreter do.
  if (const std::string rights = other_rights(program); !rights.empty())
    add(rights + " and the dynamic linker ignores LD_PRELOAD in such programs");
  const auto elf = read_elf(program);
  if (!elf) return obstacles;
  if (elf->interpreter.empty()) add(who + " is statically linked and never loads a library");
  if (elf->interpreter.find("ld-musl") != std::string::npos) add(who + " uses musl, and libvramd.so needs glibc");
  if (elf->machine != own_machine()) add(who + " is built for another machine than libvramd.so");
  return obstacles;
}

}  // namespace vramd::ctl
