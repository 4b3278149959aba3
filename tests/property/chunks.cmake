if(rapidcheck_FOUND)
  vramd_test(property_chunks KIND property SOURCES ${CMAKE_SOURCE_DIR}/tests/property/chunks_pool.cpp
             LIBRARIES vramd_chunks rapidcheck ENVIRONMENT RC_PARAMS=max_success=1000)
endif()
