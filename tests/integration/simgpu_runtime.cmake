# The stand-in runtime under nvcc's programs. Needs nvcc; a sanitized libcuda.so.1 cannot be loaded by them.
if(TARGET saxpy AND TARGET simgpu_cudart AND NOT VRAMD_SANITIZE)
  add_library(simgpu_runtime_driver_double SHARED ${CMAKE_SOURCE_DIR}/tests/integration/simgpu_runtime_driver_double.c)
  set_target_properties(simgpu_runtime_driver_double PROPERTIES PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1 NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/driver_double)
  cmake_path(GET VRAMD_NVCC PARENT_PATH nvcc_folder)
  add_test(NAME simgpu_runtime
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/integration/simgpu_runtime_test.py)
  set_tests_properties(simgpu_runtime PROPERTIES LABELS integration TIMEOUT 300
    ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};VRAMD_SOURCE=${CMAKE_SOURCE_DIR};VRAMD_GENUINE_CUDART=${nvcc_folder}/../lib64/libcudart.so.13;PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/support;PYTHONDONTWRITEBYTECODE=1")
endif()
