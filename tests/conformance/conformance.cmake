# Driver-behaviour cases: one program for the simulated driver and for GPUs (README.md).
if(NOT VRAMD_SANITIZE)
  set(conformance_here ${CMAKE_SOURCE_DIR}/tests/conformance)
  file(GLOB conformance_sources CONFIGURE_DEPENDS ${conformance_here}/*.cpp)
  add_executable(vramd_conformance ${conformance_sources} ${CMAKE_SOURCE_DIR}/tests/support/start_x86_64.S)
  # The driver only resolves names at link time: at run time it is the machine's, or the one in LD_LIBRARY_PATH.
  target_link_libraries(vramd_conformance PRIVATE vramd_freestanding vramd_cuda simgpu_libcuda -lc -lgcc)
  # A function that an older driver lacks must harm the one case that calls it: lazy binding. Start file: tests/support/start_x86_64.S.
  target_link_options(vramd_conformance PRIVATE -nostartfiles -nodefaultlibs -Wl,-z,lazy -Wl,--as-needed
    -Wl,--allow-shlib-undefined -Wl,-z,noexecstack)
  set_target_properties(vramd_conformance PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests SKIP_BUILD_RPATH ON POSITION_INDEPENDENT_CODE ON)
  target_link_options(vramd_conformance PRIVATE -pie)

  foreach(part simulated control form)
    add_test(NAME conformance_${part} COMMAND ${Python3_EXECUTABLE} ${conformance_here}/conformance_${part}.py
             $<TARGET_FILE:vramd_conformance> $<TARGET_FILE_DIR:simgpu_libcuda>)
    set_tests_properties(conformance_${part} PROPERTIES LABELS conformance TIMEOUT 120
                         ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endforeach()
  add_test(NAME conformance_diff COMMAND ${Python3_EXECUTABLE} ${conformance_here}/conformance_diff.py)
  set_tests_properties(conformance_diff PROPERTIES LABELS conformance TIMEOUT 60 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
