/* A libcuda.so.1 that needs no library at all, so that any C library can load it: just enough for a heap to live on. Addresses
 * are made up; nothing may touch them. Counts what is asked of it. */
#include <stddef.h>

typedef unsigned long long address;
enum { success = 0, invalid = 1, not_found = 500, all_memory = 1 << 30 };

static address next_address = 0x700000000000ull, next_handle = 1;
static int chunks, native;
static int context;

#pragma GCC visibility push(default)

int small_driver_chunks(void) { return chunks; }
int small_driver_native(void) { return native; }

int cuInit(unsigned flags) { return flags == 0 ? success : invalid; }
int cuDriverGetVersion(int* version) { return *version = 12040, success; }
int cuDeviceGetCount(int* count) { return *count = 1, success; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal == 0 ? success : invalid; }
int cuDeviceGetName(char* name, int room, int device) { return *name = (char)(room > 1 ? 'S' : 0), name[room > 1] = 0, device; }
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = (unsigned char)(i + device);
  return success;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = all_memory, device == 0 ? success : invalid; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return (void)attribute, *value = 1, device == 0 ? success : invalid;
}
int cuDevicePrimaryCtxRetain(void** made, int device) { return *made = &context, device == 0 ? success : invalid; }
int cuCtxSetCurrent(void* to) { return to == &context ? success : invalid; }
int cuCtxGetCurrent(void** current) { return *current = &context, success; }
int cuCtxGetDevice(int* device) { return *device = 0, success; }
int cuCtxSynchronize(void) { return success; }
int cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = all_memory, success; }
int cuMemGetAllocationGranularity(size_t* bytes, const void* properties, int option) {
  return (void)properties, (void)option, *bytes = 2 << 20, success;
}
int cuMemCreate(address* handle, size_t size, const void* properties, address flags) {
  return (void)size, (void)properties, (void)flags, ++chunks, *handle = next_handle++, success;
}
int cuMemRelease(address handle) { return (void)handle, --chunks, success; }
int cuMemAddressReserve(address* at, size_t size, size_t alignment, address wish, address flags) {
  (void)alignment, (void)wish, (void)flags;
  *at = next_address;
  next_address += (size + 0x1fffff) & ~(address)0x1fffff;
  return success;
}
int cuMemAddressFree(address at, size_t size) { return (void)at, (void)size, success; }
int cuMemMap(address at, size_t size, size_t offset, address handle, address flags) {
  return (void)at, (void)size, (void)offset, (void)handle, (void)flags, success;
}
int cuMemUnmap(address at, size_t size) { return (void)at, (void)size, success; }
int cuMemSetAccess(address at, size_t size, const void* list, size_t count) {
  return (void)at, (void)size, (void)list, (void)count, success;
}
int cuThreadExchangeStreamCaptureMode(int* mode) { return (void)mode, success; }

/* Has to be there, and is not expected to be called. */
#define UNUSED(name) \
  int name(void) { return invalid; }
UNUSED(cuCtxPopCurrent_v2)
UNUSED(cuCtxPushCurrent_v2)
UNUSED(cuDeviceGetPCIBusId)
UNUSED(cuDevicePrimaryCtxRelease_v2)
UNUSED(cuMemExportToShareableHandle)
UNUSED(cuMemImportFromShareableHandle)
UNUSED(cuMemsetD32_v2)
UNUSED(cuMemsetD8_v2)

int cuMemAlloc_v2(address* at, size_t size) { return ++native, cuMemAddressReserve(at, size, 0, 0, 0); }
int cuMemFree_v2(address at) { return (void)at, --native, success; }

static int same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

int cuGetProcAddress_v2(const char* symbol, void** function, int version, address flags, int* status) {
  (void)version, (void)flags;
  *function = same(symbol, "cuMemAlloc")         ? (void*)&cuMemAlloc_v2
              : same(symbol, "cuMemFree")        ? (void*)&cuMemFree_v2
              : same(symbol, "cuGetProcAddress") ? (void*)&cuGetProcAddress_v2
                                                 : NULL;
  if (status != NULL) *status = *function == NULL;
  return *function == NULL ? not_found : success;
}
