# Tests of the hook: libvramd.so in other people's programs. Sanitizer builds have no libvramd.so; tests/unit/hook*.cpp run there.
if(TARGET vramd_preload)
  set(hook_here ${CMAKE_SOURCE_DIR}/tests/integration)
  set(hook_out ${CMAKE_BINARY_DIR}/tests/hook)
  set(hook_driver_folder ${CMAKE_BINARY_DIR}/simgpu)
  set(hook_driver ${hook_driver_folder}/libcuda.so.1)

  # The driver under the name that programs without the versioned one open.
  file(MAKE_DIRECTORY ${hook_out}/link ${hook_out}/odd ${hook_out}/chain)
  file(CREATE_LINK ${hook_driver} ${hook_out}/link/libcuda.so SYMBOLIC)

  add_library(hook_test_settings INTERFACE)
  target_link_libraries(hook_test_settings INTERFACE vramd_options vramd_hook_headers Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_definitions(hook_test_settings INTERFACE
    HOOK_UNTOUCHED_LIBRARY="${hook_out}/libhook_untouched.so" HOOK_DRIVER="${hook_driver}"
    HOOK_DRIVER_LINK="${hook_out}/link/libcuda.so"
    HOOK_LOOKUPS_FILE="${CMAKE_SOURCE_DIR}/tools/simgpu/runtime/lookups.txt")

  add_library(hook_untouched MODULE ${hook_here}/hook_untouched.c)
  set_target_properties(hook_untouched PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${hook_out})

  # hook_program(<name> SOURCES ... [LIBRARIES ...] [OPTIONS ...])
  function(hook_program name)
    cmake_parse_arguments(P "" "" "SOURCES;LIBRARIES;OPTIONS" ${ARGN})
    add_executable(${name} ${P_SOURCES})
    target_link_libraries(${name} PRIVATE ${P_LIBRARIES})
    target_link_options(${name} PRIVATE ${P_OPTIONS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests BUILD_RPATH ""
                                             SKIP_BUILD_RPATH ON)
    add_dependencies(${name} vramd_preload hook_untouched)
    if(TARGET simgpu_libcuda)
      add_dependencies(${name} simgpu_libcuda)
    endif()
  endfunction()

  # hook_test(<name> COMMAND ... [PATH <folder of the driver>] [PRELOAD <libraries>] [ENV NAME=VALUE] [FLAGS ...])
  function(hook_test name)
    cmake_parse_arguments(T "" "PATH;PRELOAD" "COMMAND;ENV;FLAGS" ${ARGN})
    if(NOT T_PRELOAD)
      set(T_PRELOAD $<TARGET_FILE:vramd_preload>)
    endif()
    set(arguments --preload ${T_PRELOAD} ${T_FLAGS})
    if(T_PATH)
      list(APPEND arguments --path ${T_PATH})
    endif()
    foreach(pair ${T_ENV})
      list(APPEND arguments --env ${pair})
    endforeach()
    add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${hook_here}/hook_run.py ${arguments} -- ${T_COMMAND})
    set_tests_properties(${name} PROPERTIES LABELS integration TIMEOUT 60 SKIP_RETURN_CODE 77)
  endfunction()

  # --- look-ups ---------------------------------------------------------------------------------------------------------
  hook_program(hook_lookups SOURCES ${hook_here}/hook_lookups.cpp LIBRARIES vramd_catch_main hook_test_settings)
  hook_test(hook_lookups COMMAND $<TARGET_FILE:hook_lookups> PATH ${hook_driver_folder})

  hook_program(hook_disabled SOURCES ${hook_here}/hook_disabled.cpp LIBRARIES vramd_catch_main hook_test_settings)
  hook_test(hook_disabled COMMAND $<TARGET_FILE:hook_disabled> PATH ${hook_driver_folder} ENV VRAMD_DISABLE=1)
  hook_test(hook_passive_under_injection COMMAND $<TARGET_FILE:hook_disabled> PATH ${hook_driver_folder}
            ENV CUDA_INJECTION64_PATH=/nonexistent/injection.so)

  # --- a driver with oddities -------------------------------------------------------------------------------------------
  file(STRINGS ${VRAMD_CUDA_INCLUDE}/cuda.h hook_version REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" hook_version "${hook_version}")
  foreach(kind odd late)
    add_library(hook_${kind}_driver SHARED ${hook_here}/hook_odd_driver.c)
    set_target_properties(hook_${kind}_driver PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${hook_out}/${kind} OUTPUT_NAME cuda
                                                         SUFFIX .so.1)
    target_compile_definitions(hook_${kind}_driver PRIVATE ODD_DRIVER_VERSION=${hook_version})
    target_link_options(hook_${kind}_driver PRIVATE -Wl,-Bsymbolic)
  endforeach()
  set_target_properties(hook_late_driver PROPERTIES NO_SONAME ON)
  hook_program(hook_odd_driver_test SOURCES ${hook_here}/hook_odd_driver_test.cpp LIBRARIES vramd_catch_main hook_test_settings)
  add_dependencies(hook_odd_driver_test hook_odd_driver)
  hook_test(hook_odd_driver COMMAND $<TARGET_FILE:hook_odd_driver_test> PATH ${hook_out}/odd)
  hook_program(hook_late_driver_test SOURCES ${hook_here}/hook_late_driver.c LIBRARIES ${CMAKE_DL_LIBS})
  add_dependencies(hook_late_driver_test hook_late_driver)
  hook_test(hook_late_driver COMMAND $<TARGET_FILE:hook_late_driver_test> ${hook_out}/late/libcuda.so.1)

  # --- RTLD_NEXT --------------------------------------------------------------------------------------------------------
  foreach(which first second)
    add_library(hook_chain_${which} SHARED ${hook_here}/hook_chain_library.c)
    set_target_properties(hook_chain_${which} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${hook_out}/chain)
  endforeach()
  target_compile_definitions(hook_chain_first PRIVATE FIRST)
  hook_program(hook_chain SOURCES ${hook_here}/hook_chain.c LIBRARIES hook_chain_first hook_chain_second
               OPTIONS -Wl,--no-as-needed)
  hook_test(hook_chain COMMAND $<TARGET_FILE:hook_chain> PATH ${hook_out}/chain FLAGS --same-without)

  # --- programs linked to the driver ------------------------------------------------------------------------------------
  add_library(hook_next SHARED ${hook_here}/hook_next.c)
  set_target_properties(hook_next PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${hook_out})
  foreach(binding lazy now)
    hook_program(hook_linked_${binding} SOURCES ${hook_here}/hook_linked.c
                 LIBRARIES vramd_cuda hook_next -L${hook_driver_folder} -l:libcuda.so.1 ${CMAKE_DL_LIBS}
                 OPTIONS -Wl,-z,${binding})
    add_dependencies(hook_linked_${binding} simgpu_libcuda)
    hook_test(hook_linked_${binding} COMMAND $<TARGET_FILE:hook_linked_${binding}> PATH ${hook_driver_folder}:${hook_out})
  endforeach()
  hook_test(hook_ctypes COMMAND ${Python3_EXECUTABLE} ${hook_here}/hook_ctypes.py libcuda.so.1 PATH ${hook_driver_folder})
  # Known by its SONAME only.
  file(CREATE_LINK ${hook_driver} ${hook_out}/link/renamed.so SYMBOLIC)
  hook_test(hook_renamed_driver COMMAND ${Python3_EXECUTABLE} ${hook_here}/hook_ctypes.py ${hook_out}/link/renamed.so)

  # --- another library with a dlsym, after ours -------------------------------------------------------------------------
  add_library(hook_other_dlsym MODULE ${hook_here}/hook_other_dlsym.c)
  set_target_properties(hook_other_dlsym PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${hook_out})
  hook_program(hook_beside_another SOURCES ${hook_here}/hook_beside_another.c LIBRARIES ${CMAKE_DL_LIBS})
  add_dependencies(hook_beside_another hook_other_dlsym)
  hook_test(hook_beside_another COMMAND $<TARGET_FILE:hook_beside_another> PATH ${hook_driver_folder}
            PRELOAD $<TARGET_FILE:vramd_preload>:$<TARGET_FILE:hook_other_dlsym>)

  # --- programs that have nothing to do with CUDA, machines without driver ----------------------------------------------
  hook_program(hook_no_driver SOURCES ${hook_here}/hook_no_driver.c LIBRARIES ${CMAKE_DL_LIBS})
  hook_test(hook_no_driver COMMAND $<TARGET_FILE:hook_no_driver>)
  hook_test(hook_no_driver_disabled COMMAND $<TARGET_FILE:hook_no_driver> ENV VRAMD_DISABLE=1)
  add_library(loud_library SHARED ${CMAKE_SOURCE_DIR}/tests/support/loud_library.c)
  set_target_properties(loud_library PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${hook_out})
  add_test(NAME inert COMMAND ${Python3_EXECUTABLE} ${hook_here}/inert.py)
  set_tests_properties(inert PROPERTIES LABELS integration TIMEOUT 180
    ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};VRAMD_NVCC=${VRAMD_NVCC};VRAMD_TEST_LOUD_LIBRARY=$<TARGET_FILE:loud_library>")

  # --- other versions of the CUDA headers -------------------------------------------------------------------------------
  foreach(part "" _all)
    set(hook_headers_flag)
    if(part)
      set(hook_headers_flag --all)
    endif()
    add_test(NAME hook_headers${part} COMMAND ${Python3_EXECUTABLE} ${hook_here}/hook_headers.py ${CMAKE_CXX_COMPILER}
             ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/headers ${hook_headers_flag})
    set_tests_properties(hook_headers${part} PROPERTIES LABELS "integration$<$<BOOL:${part}>:;long>" TIMEOUT 600
      SKIP_RETURN_CODE 77 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1 RESOURCE_LOCK cuda_headers)
  endforeach()

  # --- other versions of the C library -----------------------------------------------------------------------------------
  # The driver is not bound to itself: where it gives out its own functions it gives out ours.
  add_library(hook_small_driver SHARED ${CMAKE_SOURCE_DIR}/tests/support/small_driver.c)
  set_target_properties(hook_small_driver PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${hook_out}/small OUTPUT_NAME cuda SUFFIX .so.1)
  target_compile_options(hook_small_driver PRIVATE -ffreestanding)
  target_link_options(hook_small_driver PRIVATE -nostdlib)
  add_executable(hook_old_libc ${hook_here}/hook_old_libc.c ${CMAKE_SOURCE_DIR}/tests/support/start_x86_64.S)
  target_link_options(hook_old_libc PRIVATE -nostartfiles -pie -Wl,--no-as-needed)
  target_link_libraries(hook_old_libc PRIVATE -l:libpthread.so.0 -l:libdl.so.2)
  set_target_properties(hook_old_libc PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME hook_old_libc COMMAND ${Python3_EXECUTABLE} ${hook_here}/hook_old_libc.py $<TARGET_FILE:vramd_preload>
           $<TARGET_FILE:hook_old_libc> ${hook_out}/small ${CMAKE_BINARY_DIR}/old_libc)
  set_tests_properties(hook_old_libc PROPERTIES LABELS integration TIMEOUT 180 SKIP_RETURN_CODE 77)

  # --- the file ---------------------------------------------------------------------------------------------------------
  set(hook_shape ${Python3_EXECUTABLE} ${hook_here}/hook_library_shape.py $<TARGET_FILE:vramd_preload>
      ${CMAKE_BINARY_DIR}/generated/shim/hook/generated/entries.inc)
  find_file(VRAMD_CUDA_STUB libcuda.so NO_DEFAULT_PATH
            PATHS ${VRAMD_CUDA_INCLUDE}/../lib/stubs ${VRAMD_CUDA_INCLUDE}/../lib64/stubs)
  if(VRAMD_CUDA_STUB)
    list(APPEND hook_shape --stub ${VRAMD_CUDA_STUB})
  endif()
  add_test(NAME hook_library_shape COMMAND ${hook_shape})
  set_tests_properties(hook_library_shape PROPERTIES LABELS integration TIMEOUT 60)

  # --- NVIDIA's own runtime ---------------------------------------------------------------------------------------------
  set(hook_toolkit_lib ${VRAMD_CUDA_INCLUDE}/../lib ${VRAMD_CUDA_INCLUDE}/../lib64)
  find_file(VRAMD_CUDART_STATIC libcudart_static.a NO_DEFAULT_PATH PATHS ${hook_toolkit_lib})
  find_file(VRAMD_CUDART_SHARED libcudart.so NO_DEFAULT_PATH PATHS ${hook_toolkit_lib})
  foreach(kind static shared)
    string(TOUPPER ${kind} hook_kind)
    if(NOT VRAMD_CUDART_${hook_kind})
      message(STATUS "hook_cudart_${kind} is left out: no ${kind} libcudart beside ${VRAMD_CUDA_INCLUDE}")
      continue()
    endif()
    hook_program(hook_cudart_${kind} SOURCES ${hook_here}/hook_cudart.cpp
                 LIBRARIES hook_test_settings ${VRAMD_CUDART_${hook_kind}} rt)
    cmake_path(GET VRAMD_CUDART_${hook_kind} PARENT_PATH hook_cudart_folder)
    hook_test(hook_cudart_${kind} COMMAND $<TARGET_FILE:hook_cudart_${kind}> PATH ${hook_cudart_folder}:${hook_driver_folder})  # not the stand-in that lies beside the driver
  endforeach()

  # --- NVIDIA's libraries ----------------------------------------------------------------------------------------------
  hook_program(hook_contract_child SOURCES ${hook_here}/hook_contract_child.cpp LIBRARIES hook_test_settings)
  if(VRAMD_CUDART_STATIC)
    hook_program(hook_contract_static SOURCES ${hook_here}/hook_contract_child.cpp
                 LIBRARIES hook_test_settings ${VRAMD_CUDART_STATIC} rt)
    target_compile_definitions(hook_contract_static PRIVATE HOOK_STATIC_RUNTIME)
  endif()
  configure_file(${hook_here}/hook_contract.py ${CMAKE_BINARY_DIR}/tests/hook_contract COPYONLY)
  if(VRAMD_CUDART_SHARED)
    cmake_path(GET VRAMD_CUDART_SHARED PARENT_PATH hook_cudart_folder)
    # The control takes for hooked what isn't: a hook that is not placed must be missed.
    add_test(NAME hook_contract COMMAND ${Python3_EXECUTABLE} ${CMAKE_BINARY_DIR}/tests/hook_contract)
    add_test(NAME hook_contract_control COMMAND ${Python3_EXECUTABLE} ${CMAKE_BINARY_DIR}/tests/hook_contract --only cudart
             --plant cuEventQuery)
    set_tests_properties(hook_contract hook_contract_control PROPERTIES LABELS integration TIMEOUT 180 SKIP_RETURN_CODE 77
      ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};VRAMD_TOOLKIT_LIB=${hook_cudart_folder};PYTHONDONTWRITEBYTECODE=1")
    set_tests_properties(hook_contract_control PROPERTIES PASS_REGULAR_EXPRESSION "missed: cuEventQuery")
  endif()
endif()
