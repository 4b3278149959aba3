vramd_test(unit_hook KIND unit LABELS threads SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/hook_entries.cpp
           ${CMAKE_SOURCE_DIR}/tests/unit/hook_driver.cpp ${CMAKE_SOURCE_DIR}/tests/unit/hook_objects.cpp
           LIBRARIES vramd_shim Threads::Threads ${CMAKE_DL_LIBS})
# Forks, so it is a program of one thread.
vramd_test(unit_hook_process KIND unit SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/hook_process.cpp
           LIBRARIES vramd_shim Threads::Threads ${CMAKE_DL_LIBS})
