# What runs on a machine with a GPU (tests/gpu/README.md), and its test on the simulated GPU.
#   vramd_trace      lib/libvramd_trace.so: shim/hook with doors that write every driver call down
#   vramd_gpu_run    all that tests/gpu/bundle carries
# Sanitizer builds have none of it: preloaded libraries.
if(VRAMD_SANITIZE)
  return()
endif()
set(gpu_here ${CMAKE_SOURCE_DIR}/tests/gpu)
set(gpu_out ${CMAKE_BINARY_DIR}/gpu)
file(MAKE_DIRECTORY ${gpu_out})

# --- the tracer -----------------------------------------------------------------------------------------------------------
set(trace_generated ${CMAKE_BINARY_DIR}/generated_trace)
set(trace_tables ${trace_generated}/shim/hook/generated)
add_custom_command(OUTPUT ${trace_tables}/entries.inc ${trace_tables}/abis.inc ${trace_tables}/trampolines.inc
  COMMAND ${Python3_EXECUTABLE} ${gpu_here}/tracer_tables.py --hook ${CMAKE_SOURCE_DIR}/shim/hook
          --compiler ${CMAKE_CXX_COMPILER} --include ${VRAMD_CUDA_INCLUDE} --out ${trace_tables}
  DEPENDS ${gpu_here}/tracer_tables.py ${CMAKE_SOURCE_DIR}/shim/hook/generate.py ${VRAMD_CUDA_INCLUDE}/cuda.h
  COMMENT "Tables of the tracer"
  VERBATIM)
set(hook_folder ${CMAKE_SOURCE_DIR}/shim/hook)
add_library(vramd_trace SHARED
  ${trace_tables}/entries.inc ${gpu_here}/tracer_doors.cpp ${gpu_here}/tracer_record.cpp
  ${hook_folder}/abis.cpp ${hook_folder}/driver_library.cpp ${hook_folder}/entries.cpp ${hook_folder}/exports.cpp
  ${hook_folder}/libc.cpp ${hook_folder}/loaded_object.cpp ${hook_folder}/lookup.cpp ${hook_folder}/process.cpp
  ${hook_folder}/query.cpp ${hook_folder}/statistics.cpp ${hook_folder}/trampolines_x86_64.S)
target_include_directories(vramd_trace PRIVATE ${trace_generated})
target_compile_definitions(vramd_trace PRIVATE __CUDA_API_VERSION_INTERNAL)
target_compile_options(vramd_trace PRIVATE -O2 -ftls-model=initial-exec)
target_link_libraries(vramd_trace PRIVATE vramd_freestanding vramd_cuda)
# As libvramd.so: no start files, libc alone.
target_link_options(vramd_trace PRIVATE
  -nostartfiles -nodefaultlibs -Wl,--version-script=${CMAKE_SOURCE_DIR}/shim/exports.map
  -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,lazy -Wl,-z,noexecstack -Wl,--as-needed)
target_link_libraries(vramd_trace PRIVATE -lc -lgcc)

# --- programs -------------------------------------------------------------------------------------------------------------
# They start on any glibc from 2.31 on: own start file, libc alone, no C++ runtime.
add_library(gpu_start OBJECT ${CMAKE_SOURCE_DIR}/tests/support/start_x86_64.S)
add_library(gpu_old_libc OBJECT ${gpu_here}/old_libc_x86_64.S)
set(gpu_link_options -nostartfiles -pie -Wl,--gc-sections -Wl,--as-needed -Wl,-z,lazy -Wl,-z,noexecstack)

set(gpu_programs)
if(VRAMD_NVCC)
  set(gpu_architectures -gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=sm_86
      -gencode arch=compute_90,code=[sm_90,compute_90])

  set(image ${gpu_out}/gpu_kernels.fatbin)
  add_custom_command(OUTPUT ${image}
    COMMAND ${VRAMD_NVCC} -std=c++17 ${gpu_architectures} -I${CMAKE_SOURCE_DIR} -fatbin -o ${image} ${gpu_here}/gpu_kernels.cu
    DEPENDS ${gpu_here}/gpu_kernels.cu ${gpu_here}/gpu_kernels.cuh
    COMMENT "nvcc gpu_kernels"
    VERBATIM)
  add_custom_target(gpu_image DEPENDS ${image})
  add_library(gpu_image_object OBJECT ${gpu_here}/gpu_image.S)
  target_compile_definitions(gpu_image_object PRIVATE GPU_RUN_IMAGE="${image}")
  set_property(SOURCE ${gpu_here}/gpu_image.S PROPERTY OBJECT_DEPENDS ${image})
  add_dependencies(gpu_image_object gpu_image)

  add_library(gpu_twins MODULE ${gpu_here}/gpu_twins.cpp)
  target_link_libraries(gpu_twins PRIVATE simgpu_twins)
  target_compile_options(gpu_twins PRIVATE -O3)
  set_target_properties(gpu_twins PROPERTIES PREFIX "" OUTPUT_NAME gpu.twins LIBRARY_OUTPUT_DIRECTORY ${gpu_out})
  list(APPEND gpu_programs gpu_twins)

  # gpu_cuda_objects(<variable> <name> <source>...): compiled by nvcc
  function(gpu_cuda_objects variable name)
    set(objects)
    foreach(source ${ARGN})
      cmake_path(GET source STEM stem)
      set(object ${gpu_out}/${name}.${stem}.o)
      add_custom_command(OUTPUT ${object}
        COMMAND ${VRAMD_NVCC} -std=c++17 -O2 ${gpu_architectures} -I${CMAKE_SOURCE_DIR} -Xcompiler=-Wall,-Wextra,-fPIE,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-fno-asynchronous-unwind-tables
                -MD -MT ${object} -MF ${object}.d -c -o ${object} ${source}
        DEPENDS ${source}
        DEPFILE ${object}.d
        COMMENT "nvcc ${name}: ${stem}"
        VERBATIM)
      list(APPEND objects ${object})
    endforeach()
    set(${variable} ${objects} PARENT_SCOPE)
  endfunction()

  cmake_path(GET VRAMD_NVCC PARENT_PATH gpu_nvcc_folder)
  find_file(VRAMD_GPU_CUDART_STATIC libcudart_static.a NO_DEFAULT_PATH
            PATHS ${gpu_nvcc_folder}/../lib64 ${VRAMD_CUDA_INCLUDE}/../lib ${VRAMD_CUDA_INCLUDE}/../lib64)

  # gpu_program(<name> OBJECTS ... [LIBRARIES ...]): gpu/<name>, linked by the host compiler
  function(gpu_program name)
    cmake_parse_arguments(P "" "" "OBJECTS;LIBRARIES" ${ARGN})
    set(program ${gpu_out}/${name})
    add_custom_command(OUTPUT ${program}
      COMMAND ${CMAKE_CXX_COMPILER} ${gpu_link_options} -o ${program} $<TARGET_OBJECTS:gpu_start> $<TARGET_OBJECTS:gpu_old_libc>
              ${P_OBJECTS} ${P_LIBRARIES} -nodefaultlibs -lc -lgcc
      DEPENDS ${P_OBJECTS} gpu_start $<TARGET_OBJECTS:gpu_start> gpu_old_libc $<TARGET_OBJECTS:gpu_old_libc>
      COMMENT "link gpu/${name}"
      COMMAND_EXPAND_LISTS
      VERBATIM)
    add_custom_target(gpu_${name} DEPENDS ${program})
    set(gpu_programs ${gpu_programs} gpu_${name} PARENT_SCOPE)
  endfunction()

  gpu_cuda_objects(calls runtime_calls ${gpu_here}/runtime_calls.cu ${gpu_here}/runtime_calls_memory.cu
                   ${gpu_here}/runtime_calls_work.cu)
  list(APPEND calls $<TARGET_OBJECTS:gpu_image_object>)
  # On glibc before 2.34 threads and dynamic loading stand in libraries of their own.
  set(gpu_old_libraries -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:librt.so.1 -Wl,--as-needed)
  if(VRAMD_GPU_CUDART_STATIC)
    gpu_program(runtime_calls OBJECTS ${calls} LIBRARIES ${VRAMD_GPU_CUDART_STATIC} ${gpu_old_libraries})
  endif()
  if(TARGET simgpu_cudart)
    gpu_program(runtime_calls_shared OBJECTS ${calls} LIBRARIES $<TARGET_FILE:simgpu_cudart> ${gpu_old_libraries})
    add_dependencies(gpu_runtime_calls_shared simgpu_cudart)
  endif()

  # The test programs with NVIDIA's runtime linked in. Those of tests/programs have the stand-in's, or look for a shared one.
  if(VRAMD_GPU_CUDART_STATIC AND TARGET saxpy)
    foreach(program saxpy runtime_checks)
      set(objects)
      file(GLOB stems RELATIVE ${CMAKE_SOURCE_DIR}/tests/programs ${CMAKE_SOURCE_DIR}/tests/programs/${program}*.cu)
      foreach(stem ${stems})
        string(REPLACE .cu .o object ${stem})
        list(APPEND objects ${CMAKE_BINARY_DIR}/tests/programs/${program}.${object})
      endforeach()
      gpu_program(${program} OBJECTS ${objects}
        LIBRARIES ${VRAMD_GPU_CUDART_STATIC} -static-libgcc -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic ${gpu_old_libraries} -l:libm.so.6 -lgcc_eh)
      add_dependencies(gpu_${program} ${program})
    endforeach()
  endif()
endif()

# --- calibration ----------------------------------------------------------------------------------------------------------
add_executable(vramd_calibrate ${gpu_here}/calibrate.cpp ${gpu_here}/calibrate_chunks.cpp ${gpu_here}/calibrate_work.cpp
               $<TARGET_OBJECTS:gpu_start>)
if(VRAMD_NVCC)
  target_sources(vramd_calibrate PRIVATE $<TARGET_OBJECTS:gpu_image_object>)
  target_compile_definitions(vramd_calibrate PRIVATE VRAMD_GPU_IMAGE)
endif()
target_link_libraries(vramd_calibrate PRIVATE vramd_freestanding vramd_cuda simgpu_libcuda)
target_compile_options(vramd_calibrate PRIVATE -O2)
target_link_options(vramd_calibrate PRIVATE ${gpu_link_options} -nodefaultlibs -Wl,--allow-shlib-undefined)
target_link_libraries(vramd_calibrate PRIVATE -lc -lgcc)
# No run path: the loader's usual folders have the driver.
set_target_properties(vramd_calibrate PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${gpu_out} SKIP_BUILD_RPATH ON)
list(APPEND gpu_programs vramd_calibrate)

add_custom_target(vramd_gpu_run ALL DEPENDS vramd_trace vramd_preload simgpu_libcuda ${gpu_programs})
foreach(part vramd_conformance simgpu_cudart saxpy runtime_checks)
  if(TARGET ${part})
    add_dependencies(vramd_gpu_run ${part})
  endif()
endforeach()

add_test(NAME gpu_run_simulated COMMAND ${Python3_EXECUTABLE} ${gpu_here}/gpu_run_simulated.py)
set(gpu_environment VRAMD_SOURCE=${CMAKE_SOURCE_DIR} VRAMD_BUILD=${CMAKE_BINARY_DIR} PYTHONDONTWRITEBYTECODE=1)
if(VRAMD_NVCC AND TARGET simgpu_cudart AND VRAMD_GPU_CUDART_STATIC)
  list(APPEND gpu_environment VRAMD_HAS_NVCC=1)
else()
  message(STATUS "gpu_run_simulated is without calls, programs and kernels: they need nvcc, CUDA 13 and libcudart_static.a")
endif()
set_tests_properties(gpu_run_simulated PROPERTIES LABELS gpu TIMEOUT 300 ENVIRONMENT "${gpu_environment}")
