// A program that is linked to libcuda.so.1, as driver-API programs are. Built once with lazy and once with
// immediate binding.
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) {                                            \
      printf("line %d: %s does not hold\n", __LINE__, #condition); \
      return 1;                                                    \
    }                                                              \
  } while (0)

static int lies_in(const void* function, const char* library) {
  Dl_info info;
  return dladdr(function, &info) != 0 && strstr(info.dli_fname, library) != NULL;
}

void* next_definition(const char* name);  // hook_next.c

int main(void) {
  // Hooked or not, a linked name leads through libvramd.so.
  CHECK(lies_in((const void*)&cuMemAlloc, "libvramd.so"));
  CHECK(lies_in((const void*)&cuDeviceGet, "libvramd.so"));

  // RTLD_NEXT from a library behind ours leads to the driver, also for a hooked name.
  CHECK(lies_in(next_definition("cuInit"), "libcuda.so.1"));

  CHECK(cuInit(0) == CUDA_SUCCESS);
  CUdevice device = -1;
  CHECK(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  CUcontext context;
  CHECK(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc(&address, 1 << 20) == CUDA_SUCCESS);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  // A pointer has one value, however it is asked for.
  void* found = NULL;
  CHECK(cuGetProcAddress("cuMemAlloc", &found, 12000, 0, NULL) == CUDA_SUCCESS);
  CHECK(found == (void*)&cuMemAlloc);
  CHECK(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2") == found);
  CHECK(cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS);
  return 0;
}
