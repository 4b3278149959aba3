# Images and twins of kernels.
find_library(SIMGPU_ZSTD zstd REQUIRED)
vramd_test(simgpu_image_test KIND unit
  SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/simgpu_image_test.cpp ${CMAKE_SOURCE_DIR}/tools/simgpu/driver/image.cpp
          ${CMAKE_SOURCE_DIR}/tools/simgpu/driver/image_ptx.cpp
  LIBRARIES ${SIMGPU_ZSTD})
if(VRAMD_NVCC)
  set(folder ${CMAKE_BINARY_DIR}/tests/images)
  set(source ${CMAKE_SOURCE_DIR}/tests/unit/simgpu_image_kernels.cu)
  set(both -gencode arch=compute_86,code=sm_86 -gencode arch=compute_90,code=[sm_90,compute_90])
  add_custom_command(
    OUTPUT ${folder}/sm_86.cubin ${folder}/sm_90.cubin ${folder}/plain.fatbin ${folder}/compressed.fatbin ${folder}/ptx.fatbin
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${VRAMD_NVCC} -std=c++17 -cubin -arch=sm_86 -o ${folder}/sm_86.cubin ${source}
    COMMAND ${VRAMD_NVCC} -std=c++17 -cubin -arch=sm_90 -o ${folder}/sm_90.cubin ${source}
    COMMAND ${VRAMD_NVCC} -std=c++17 -fatbin --no-compress ${both} -o ${folder}/plain.fatbin ${source}
    COMMAND ${VRAMD_NVCC} -std=c++17 -fatbin -Xfatbin=-compress-all ${both} -o ${folder}/compressed.fatbin ${source}
    COMMAND ${VRAMD_NVCC} -std=c++17 -fatbin -gencode arch=compute_90,code=compute_90 -o ${folder}/ptx.fatbin ${source}
    DEPENDS ${source}
    COMMENT "Cubins for simgpu_image_test"
    VERBATIM)
  target_sources(simgpu_image_test PRIVATE ${folder}/sm_86.cubin)
  target_compile_definitions(simgpu_image_test PRIVATE SIMGPU_IMAGE_FOLDER="${folder}")
endif()

vramd_test(simgpu_twins_test KIND unit
  SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/simgpu_twins_test.cpp
  LIBRARIES simgpu_twins Threads::Threads LABELS threads)
vramd_test(simgpu_fibers_test KIND unit
  SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/simgpu_fibers_test.cpp
  LIBRARIES simgpu_twins Threads::Threads LABELS threads)
# Optimised, as twins are: what a compiler keeps in registers across a barrier is what the test is about.
target_compile_options(simgpu_fibers_test PRIVATE -O2)
add_test(NAME simgpu_twin_refusals
  COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/unit/simgpu_twin_refusals.py ${CMAKE_CXX_COMPILER} ${CMAKE_SOURCE_DIR}
          ${VRAMD_CUDA_INCLUDE})
set_tests_properties(simgpu_twin_refusals PROPERTIES LABELS unit TIMEOUT 120)
