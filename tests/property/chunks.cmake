if(rapidcheck_FOUND)
  vramd_test(property_chunks KIND property SOURCES ${CMAKE_SOURCE_DIR}/tests/property/chunks_pool.cpp
             LIBRARIES vramd_chunks rapidcheck ENVIRONMENT RC_PARAMS=max_success=1000)
  add_test(NAME property_chunks_long COMMAND property_chunks "[.long]")
  set_tests_properties(property_chunks_long PROPERTIES LABELS "property;long" TIMEOUT 1200)
endif()
