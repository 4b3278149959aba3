/* A library that opens the driver, uses it and lets it go; plugins of life_threads.c loads it again and again. */
#include "life.h"

__attribute__((visibility("default"))) unsigned long life_plugin(unsigned n);
unsigned long life_plugin(unsigned n) {
  start_driver(0);
  return use_memory(n);
}
