/* A libcuda.so.1 that only answers look-ups: it writes each question to DOUBLE_LOG, one line each, with the pointer it came
 * through (A: the one that dlsym gives; B, C: those returned for cuGetProcAddress 11030 and 12000). DOUBLE_VERSION and
 * DOUBLE_INIT are what cuDriverGetVersion and cuInit answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define NOT_FOUND 500

static int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text != NULL ? atoi(text) : otherwise;
}

static int init(unsigned flags) {
  (void)flags;
  return number("DOUBLE_INIT", SUCCESS);
}

static int version(int* value) {
  *value = number("DOUBLE_VERSION", 13000);
  return SUCCESS;
}

static int ask_b(const char*, void**, int, unsigned long long, int*);
static int ask_c(const char*, void**, int, unsigned long long, int*);

static int answer(char through, const char* name, void** pointer, int wanted, unsigned long long flags) {
  FILE* log = fopen(getenv("DOUBLE_LOG"), "a");
  if (log == NULL) abort();
  fprintf(log, "%c %s %d %llu\n", through, *name != '\0' ? name : "\"\"", wanted, flags);
  fclose(log);
  *pointer = NULL;
  if (strcmp(name, "cuInit") == 0) *pointer = (void*)init;
  if (strcmp(name, "cuDriverGetVersion") == 0) *pointer = (void*)version;
  if (strcmp(name, "cuGetProcAddress") == 0) *pointer = (void*)(wanted >= 12000 ? ask_c : ask_b);
  return *pointer != NULL ? SUCCESS : NOT_FOUND;
}

static int ask_b(const char* name, void** pointer, int wanted, unsigned long long flags, int* status) {
  *status = 0;
  return answer('B', name, pointer, wanted, flags);
}

static int ask_c(const char* name, void** pointer, int wanted, unsigned long long flags, int* status) {
  *status = 0;
  return answer('C', name, pointer, wanted, flags);
}

__attribute__((visibility("default"))) int cuGetProcAddress_v2(const char* name, void** pointer, int wanted,
                                                               unsigned long long flags, int* status) {
  *status = 0;
  return answer('A', name, pointer, wanted, flags);
}
