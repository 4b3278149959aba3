# The form of vramd-bench and its verdicts. Figures are not judged here: that is what `vramd-bench --check` is for.
if(NOT VRAMD_SANITIZE)
  add_library(vramd_test_slow_library SHARED ${CMAKE_SOURCE_DIR}/tests/support/slow_library.c)
  set_target_properties(vramd_test_slow_library PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME bench_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/integration/bench_test.py)
  set_tests_properties(bench_test PROPERTIES LABELS integration TIMEOUT 180 ENVIRONMENT
    "VRAMD_BUILD=${CMAKE_BINARY_DIR};VRAMD_TEST_SLOW_LIBRARY=$<TARGET_FILE:vramd_test_slow_library>;PYTHONDONTWRITEBYTECODE=1")
endif()
