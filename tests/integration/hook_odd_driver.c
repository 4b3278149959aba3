// A libcuda.so.1 with the oddities that the hook must bear: it looks up its own functions while it
// initialises, lacks some, and knows an ABI that is newer than our headers. Functions take what the tests
// pass, not what cuda.h says.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { kSuccess = 0, kInvalidValue = 1, kNotFound = 500, kNewestKnown = ODD_DRIVER_VERSION };

#pragma GCC visibility push(default)

static void* own_lookup;
static void* constructor_lookup;

static void* look_up_own_function(void) {
  void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return self == NULL ? NULL : dlsym(self, "cuMemAlloc_v2");
}

__attribute__((constructor)) static void at_load(void) { constructor_lookup = look_up_own_function(); }

int cuInit(unsigned flags) {
  (void)flags;
  own_lookup = look_up_own_function();
  return kSuccess;
}

void* odd_driver_own_lookup(void) { return own_lookup; }
void* odd_driver_constructor_lookup(void) { return constructor_lookup; }

int cuMemAlloc_v2(unsigned long long* address, size_t size) {
  *address = 0x1000 + size;
  return kSuccess;
}

// Integer and floating-point arguments in every register that carries one, and two on the stack.
int cuParamSetf(long a, long b, long c, long d, long e, long f, double s, double t, double u, double v, double w, double x,
                double y, double z, long on_stack, double also_on_stack) {
  const int integers = a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && on_stack == 7;
  const int doubles =
      s == 0.5 && t == 1.5 && u == 2.5 && v == 3.5 && w == 4.5 && x == 5.5 && y == 6.5 && z == 7.5 && also_on_stack == 8.5;
  return integers && doubles ? kSuccess : kInvalidValue;
}

int cuTexRefSetMipmapLevelClamp(void* texture, float least, float greatest) {
  return texture == (void*)8 && least == 0.25f && greatest == 3.75f ? kSuccess : kInvalidValue;
}

int cuCtxSynchronize(void) { return kSuccess; }

static int alloc_of_a_later_version(void) { return kSuccess; }

int cuGetProcAddress_v2(const char* symbol, void** function, int version, unsigned long long flags, int* status) {
  (void)flags;
  if (status != NULL) *status = 0;
  *function = NULL;
  if (strcmp(symbol, "cuMemAlloc") == 0) {
    *function = version > kNewestKnown ? (void*)&alloc_of_a_later_version : (void*)&cuMemAlloc_v2;
  } else if (strcmp(symbol, "cuInit") == 0) {
    *function = (void*)&cuInit;
  } else if (strcmp(symbol, "cuMemFree") == 0) {
    return kSuccess;  // success without a function
  }
  return *function == NULL ? kNotFound : kSuccess;
}

#pragma GCC visibility pop
