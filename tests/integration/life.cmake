# How processes live, under the preloaded shim: one program that does it all, by what it is told, and process_life.py that runs it.
if(TARGET vramd_preload AND TARGET simgpu_libcuda)
  set(life_here ${CMAKE_SOURCE_DIR}/tests/integration)
  set(life_jobs ${life_here}/life_work.c ${life_here}/life_worker.c ${life_here}/life_process.c ${life_here}/life_threads.c
                ${life_here}/life_signals.c ${life_here}/life_exits.c ${life_here}/life_descriptors.c ${life_here}/life_limits.c)
  add_library(life_settings INTERFACE)
  target_link_libraries(life_settings INTERFACE vramd_options vramd_cuda Threads::Threads ${CMAKE_DL_LIBS})
  add_library(life_plugin MODULE ${life_here}/life_plugin.c ${life_here}/life_work.c)
  add_library(life_malloc MODULE ${life_here}/life_malloc.c)
  target_compile_options(life_malloc PRIVATE -fno-builtin)
  add_executable(life_worker ${life_jobs})
  set(life_programs life_worker)
  if(CMAKE_C_COMPILER_ID STREQUAL GNU)  # whose sanitizers are libraries, to be named before others in LD_PRELOAD
    foreach(sanitizer address thread)
      add_executable(life_worker_${sanitizer} ${life_jobs})
      target_compile_options(life_worker_${sanitizer} PRIVATE -fsanitize=${sanitizer})
      target_link_options(life_worker_${sanitizer} PRIVATE -fsanitize=${sanitizer})
      list(APPEND life_programs life_worker_${sanitizer})
    endforeach()
  endif()
  add_executable(life_static ${life_here}/life_static.c)
  target_link_options(life_static PRIVATE -static)
  foreach(target life_plugin life_malloc ${life_programs})
    target_link_libraries(${target} PRIVATE life_settings)
  endforeach()
  set_target_properties(life_plugin life_malloc life_static ${life_programs} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(life_worker vramd_preload simgpu_libcuda)

  # Parts that may run beside each other.
  foreach(half programs surroundings slow)
    add_test(NAME process_life_${half} COMMAND ${Python3_EXECUTABLE} ${life_here}/process_life.py --${half})
    set_tests_properties(process_life_${half} PROPERTIES LABELS "integration$<$<STREQUAL:${half},slow>:;long>" TIMEOUT 180
      ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
  endforeach()

  foreach(length "" _long)
    set(stress_seconds 8)
    if(length)
      set(stress_seconds 60)
    endif()
    add_test(NAME daemon_stress${length} COMMAND ${Python3_EXECUTABLE} ${life_here}/daemon_stress.py ${stress_seconds})
    set_tests_properties(daemon_stress${length} PROPERTIES LABELS "integration;stress$<$<BOOL:${length}>:;long>" TIMEOUT 180
      ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
  endforeach()

  add_test(NAME orders_test COMMAND ${Python3_EXECUTABLE} ${life_here}/orders_test.py)
  set_tests_properties(orders_test PROPERTIES LABELS integration TIMEOUT 120
    ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
endif()
