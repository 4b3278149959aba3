# vramctl against a daemon written in Python. The preloaded library is an empty one, without sanitizers: programs that are
# not built with them could not load it otherwise.
add_library(vramd_test_empty_library SHARED ${CMAKE_SOURCE_DIR}/tests/support/empty_library.c)
set_target_properties(vramd_test_empty_library PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests COMPILE_OPTIONS "" LINK_OPTIONS "")

find_package(CLI11 REQUIRED)
string(REGEX MATCH "^2\\.1\\." known_help "${CLI11_VERSION}")
add_test(NAME vramctl_test
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/integration/vramctl_test.py $<TARGET_FILE:vramctl>
          $<TARGET_FILE:vramd_test_empty_library> ${CMAKE_SOURCE_DIR}/tests/integration/golden
          $<IF:$<BOOL:${known_help}>,compare-help,skip-help>)
# Some cases preload libraries into vramctl itself; a sanitizer would refuse to come second.
set_tests_properties(vramctl_test PROPERTIES LABELS integration TIMEOUT 300
  ENVIRONMENT "ASAN_OPTIONS=verify_asan_link_order=0")

# Calibration starts a child under the shim, on the simulated GPU.
if(TARGET simgpu_cudart AND TARGET vramd_preload)
  add_library(blind_runtime SHARED ${CMAKE_SOURCE_DIR}/tests/support/blind_runtime.c)
  set_target_properties(blind_runtime PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME calibrate_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/integration/calibrate_test.py)
  set_tests_properties(calibrate_test PROPERTIES LABELS integration TIMEOUT 120
    ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/support;PYTHONDONTWRITEBYTECODE=1")
endif()
