vramd_test(simgpu_engines_test KIND unit SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/simgpu_engines_test.cpp LABELS threads
           LIBRARIES vramd_options Threads::Threads)
