vramd_test(unit_chunks KIND unit SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/chunks_pool.cpp
           ${CMAKE_SOURCE_DIR}/tests/unit/chunks_limits.cpp LIBRARIES vramd_chunks)
