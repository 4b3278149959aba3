// A library to preload where a test is about the preloading and not about what the library does.
int vramd_test_empty_library(void) { return 0; }
