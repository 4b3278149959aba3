/* A program without a loader: nothing can be preloaded into it. */
#include <stdio.h>

int main(void) {
  puts("static");
  return 4;
}
