# The simulated driver by itself: driver-API programs against libcuda.so.1.
set(simgpu_tests ${CMAKE_SOURCE_DIR}/tests/integration)

add_executable(simgpu_child ${CMAKE_SOURCE_DIR}/tests/support/simgpu_child.cpp)
target_link_libraries(simgpu_child PRIVATE vramd_options vramd_cuda simgpu_libcuda)
set_target_properties(simgpu_child PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

foreach(area memory streams capture graphs pools control scale procs processes devices)
  vramd_test(simgpu_${area} KIND integration SOURCES ${simgpu_tests}/simgpu_${area}.cpp
             LIBRARIES vramd_options vramd_cuda simgpu_libcuda ${CMAKE_DL_LIBS})
  target_compile_definitions(simgpu_${area} PRIVATE SIMGPU_CHILD="$<TARGET_FILE:simgpu_child>")
  add_dependencies(simgpu_${area} simgpu_child)
endforeach()
add_dependencies(simgpu_procs simgpu_generated)
target_include_directories(simgpu_procs PRIVATE ${SIMGPU_GENERATED})

# Once against the library, once with the driver inside the executable, as sanitizer tests of the shim have it.
vramd_test(simgpu_threads KIND integration LABELS threads SOURCES ${simgpu_tests}/simgpu_threads.cpp
           LIBRARIES vramd_options vramd_cuda simgpu_libcuda)
vramd_test(simgpu_threads_inside KIND integration LABELS threads SOURCES ${simgpu_tests}/simgpu_threads.cpp
           LIBRARIES vramd_options vramd_cuda simgpu_driver)

# As one executable with the driver inside, so that sanitizers see both.
vramd_test(simgpu_stress KIND integration LABELS "stress;threads" SOURCES ${simgpu_tests}/simgpu_stress.cpp
           LIBRARIES vramd_options vramd_cuda simgpu_driver)
add_test(NAME simgpu_stress_long COMMAND simgpu_stress)
set_tests_properties(simgpu_stress_long PROPERTIES LABELS "stress;long" TIMEOUT 300 ENVIRONMENT "VRAMD_STRESS_SECONDS=60")
