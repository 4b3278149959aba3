/* A preloaded library that is not inert: tests of inertness must notice it. */
#include <unistd.h>

__attribute__((constructor)) static void speak(void) { (void)!write(2, "loud\n", 5); }
