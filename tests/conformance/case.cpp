#include "tests/conformance/case.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "tests/conformance/gate.hpp"

namespace vramd::conformance {
namespace {

constexpr std::size_t kRecordSize = 3500;  // below PIPE_BUF: one write is one record

char observed[kRecordSize];
std::size_t used = 0;
bool differs = false;
int record_fd = 1;

void append(const char* text) {
  const std::size_t length = std::strlen(text);
  if (used != 0 && used + 2 < kRecordSize) {
    observed[used++] = ';';
    observed[used++] = ' ';
  }
  const std::size_t fits = used + length < kRecordSize - 1 ? length : kRecordSize - 1 - used;
  std::memcpy(observed + used, text, fits);
  used += fits;
  observed[used] = '\0';
}

[[noreturn]] void finish(Outcome outcome) {
  open_all_gates();  // a stream that waits for ever could hold up the end of the process
  char record[kRecordSize + 32];
  const int length = std::snprintf(record, sizeof record, "%s\n%s", to_text(outcome), observed);
  const ssize_t written = ::write(record_fd, record, static_cast<std::size_t>(length));
  ::_exit(written == length ? 0 : 1);
}

const char* name_of(CUresult result) {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) return "unknown";
  for (const char* const prefix : {"CUDA_ERROR_", "CUDA_"}) {
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return name + std::strlen(prefix);
  }
  return name;
}

int function_length(const char* call) {
  const char* const end = std::strchr(call, '(');
  return static_cast<int>(end ? end - call : static_cast<std::ptrdiff_t>(std::strlen(call)));
}

}  // namespace

const char* to_text(Source source) {
  switch (source) {
    case Source::documented: return "documented";
    case Source::assumed: return "assumed";
    default: return "measured";
  }
}

const char* to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::as_expected: return "as_expected";
    case Outcome::differs: return "differs";
    case Outcome::not_available: return "not_available";
    case Outcome::crashed: return "crashed";
    default: return "timed_out";
  }
}

void need(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  observe("preparation failed: %s = %s (%d)", call, name_of(result), static_cast<int>(result));
  finish(Outcome::differs);
}

void need_that(bool condition, const char* text) {
  if (condition) return;
  observe("preparation failed: %s", text);
  finish(Outcome::differs);
}

void expect_result(CUresult got, std::initializer_list<CUresult> wanted, const char* call) {
  bool matches = false;
  for (const CUresult code : wanted) matches |= got == code;
  observe("%.*s = %s (%d)", function_length(call), call, name_of(got), static_cast<int>(got));
  if (matches) return;
  differs = true;
  observe("expected %s", name_of(*wanted.begin()));
}

void expect_that(bool condition, const char* text) {
  observe("%s: %s", text, condition ? "yes" : "NO");
  differs |= !condition;
}

void observe(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  append(text);
}

void not_available(const char* why) {
  append(why);
  finish(Outcome::not_available);
}

const Case* find_case(const char* name) {
  for (std::size_t i = 0; i < kListCount; ++i) {
    for (std::size_t j = 0; j < kLists[i]->count; ++j) {
      if (std::strcmp(kLists[i]->cases[j].name, name) == 0) return &kLists[i]->cases[j];
    }
  }
  return nullptr;
}

void judge(const Case& c, int fd) {
  record_fd = fd;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // a program that the case starts must not keep the runner waiting
  c.body(c.parameter);
  finish(differs ? Outcome::differs : Outcome::as_expected);
}

}  // namespace vramd::conformance
