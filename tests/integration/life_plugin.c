/* A library that opens the driver and uses it; jobs of life_threads.c load it in several ways. */
#include "life.h"

#pragma GCC visibility push(default)
unsigned long life_plugin(unsigned n);
CUdeviceptr life_plugin_take(size_t size, unsigned char fill);
void* life_plugin_allocator(void);

CUdeviceptr life_plugin_take(size_t size, unsigned char fill) { return take(size, fill); }
void* life_plugin_allocator(void) { return (void*)driver.cuMemAlloc; }

unsigned long life_plugin(unsigned n) {
  start_driver(0);
  return use_memory(n);
}
