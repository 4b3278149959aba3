// A case: one behaviour of the driver, judged in a process of its own.
//
// The body's verdict is global state of that process. A failed NEED ends it there and then; nothing has to be undone, because
// the end of the process undoes it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <initializer_list>

namespace vramd::conformance {

enum class Source {
  documented,  // the header or NVIDIA's text says so
  assumed,     // we build for it until a GPU has answered
  measured,    // a GPU has answered
};
enum class Outcome { as_expected, differs, not_available, crashed, timed_out };

const char* to_text(Source source);
const char* to_text(Outcome outcome);

struct Case {
  const char* name;
  const char* expectation;
  Source source;
  void (*body)(int parameter);
  int parameter = 0;
};

struct CaseList {
  const Case* cases;
  std::size_t count;
};

// --- for bodies ---
// A preparation: anything but success ends the case as `differs`, with the call's text.
void need(CUresult result, const char* call);
void need_that(bool condition, const char* text);
// A judgement: recorded, the case goes on.
void expect_result(CUresult got, std::initializer_list<CUresult> wanted, const char* call);
void expect_that(bool condition, const char* text);
// Recorded, not judged.
void observe(const char* format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void not_available(const char* why);

#define NEED(call) ::vramd::conformance::need((call), #call)
#define EXPECT(code, call) ::vramd::conformance::expect_result((call), {code}, #call)
#define EXPECT_ONE_OF(call, ...) ::vramd::conformance::expect_result((call), {__VA_ARGS__}, #call)

// --- for the runner ---
const Case* find_case(const char* name);
extern const CaseList* const kLists[];
extern const std::size_t kListCount;
// Runs the body in this process and writes "outcome\nobserved" to `fd`.
[[noreturn]] void judge(const Case& c, int fd);

}  // namespace vramd::conformance
