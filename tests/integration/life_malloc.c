/* A preloaded malloc of the kind that tracers and profilers bring. It counts the calls that come from libvramd.so, which must
 * make none: its bookkeeping has memory of its own. It writes at exit: whether the shim is there, all calls, the shim's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void* __libc_calloc(size_t, size_t);

#define EXPORTED __attribute__((visibility("default")))

static uintptr_t begin, end;
static unsigned long from_shim, total;

static int note_shim(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size, (void)unused;
  if (strstr(info->dlpi_name, "libvramd.so") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) continue;
    begin = info->dlpi_addr + part->p_vaddr;
    end = begin + part->p_memsz;
  }
  return 1;
}

__attribute__((constructor)) static void find_shim(void) { (void)dl_iterate_phdr(note_shim, NULL); }

/* Looked up inside the first malloc() of the process, which is before any constructor. calloc is not: dlsym() itself may call
 * it. */
static void* (*genuine_malloc)(size_t);
static void* (*genuine_realloc)(void*, size_t);
static void (*genuine_free)(void*);

static void look_up(void) {
  genuine_malloc = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  genuine_realloc = (void* (*)(void*, size_t))dlsym(RTLD_NEXT, "realloc");
  genuine_free = (void (*)(void*))dlsym(RTLD_NEXT, "free");
}

static void count(const void* caller) {
  if (genuine_free == NULL) look_up();
  __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
  if ((uintptr_t)caller >= begin && (uintptr_t)caller < end) __atomic_fetch_add(&from_shim, 1, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void report(void) {
  const char* path = getenv("LIFE_MALLOC_REPORT");
  FILE* file = path != NULL ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%d %lu %lu\n", begin != 0, total, from_shim);
  fclose(file);
}

EXPORTED void* malloc(size_t size) {
  count(__builtin_return_address(0));
  return genuine_malloc(size);
}
EXPORTED void* calloc(size_t n, size_t size) {
  count(__builtin_return_address(0));
  return __libc_calloc(n, size);
}
EXPORTED void* realloc(void* p, size_t size) {
  count(__builtin_return_address(0));
  return genuine_realloc(p, size);
}
EXPORTED void free(void* p) {
  count(__builtin_return_address(0));
  genuine_free(p);
}
