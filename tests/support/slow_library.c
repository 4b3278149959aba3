// A library that is slow to load: what vramd-bench startup must notice.
#include <unistd.h>

__attribute__((constructor)) static void wait_a_little(void) { usleep(5000); }
