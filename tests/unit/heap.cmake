vramd_test(heap_test KIND unit LABELS threads SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/heap_test.cpp LIBRARIES vramd_heap
           Threads::Threads)
