# The CUDA headers and, where a toolkit is installed, nvcc.
#   VRAMD_CUDA_INCLUDE  folder with cuda.h. Found in the toolkit, in /usr/include, or where tools/setup put PyPI's headers
#   VRAMD_NVCC          nvcc, or empty: then programs that need it are left out
#   vramd_cuda          interface target: the include path
set(VRAMD_CUDA_INCLUDE "" CACHE PATH "Folder with cuda.h (CUDA 12.4 to 13.x)")
find_program(VRAMD_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT VRAMD_CUDA_INCLUDE)
  set(hints $ENV{CUDA_HOME}/include)
  if(VRAMD_NVCC)
    file(REAL_PATH ${VRAMD_NVCC} nvcc_path)
    cmake_path(GET nvcc_path PARENT_PATH nvcc_bin)
    cmake_path(GET nvcc_bin PARENT_PATH nvcc_home)
    list(APPEND hints ${nvcc_home}/include ${nvcc_home}/targets/x86_64-linux/include)
  endif()
  find_path(vramd_cuda_header cuda.h HINTS ${hints} /usr/local/cuda/include ${CMAKE_SOURCE_DIR}/build/cuda-headers NO_CACHE)
  if(NOT vramd_cuda_header)
    message(FATAL_ERROR "cuda.h not found. Run tools/setup (it fetches the headers from PyPI where no CUDA toolkit is "
                        "installed), or pass -DVRAMD_CUDA_INCLUDE=/path/to/include")
  endif()
  set(VRAMD_CUDA_INCLUDE ${vramd_cuda_header} CACHE PATH "" FORCE)
endif()
if(NOT VRAMD_NVCC)
  message(STATUS "nvcc not found: programs compiled by nvcc (tests/programs) are left out")
endif()
add_library(vramd_cuda INTERFACE)
target_include_directories(vramd_cuda SYSTEM INTERFACE ${VRAMD_CUDA_INCLUDE})
