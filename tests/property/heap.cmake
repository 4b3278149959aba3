if(rapidcheck_FOUND)
  vramd_test(placement_property_test KIND property SOURCES ${CMAKE_SOURCE_DIR}/tests/property/placement_test.cpp
             LIBRARIES vramd_heap rapidcheck ENVIRONMENT "RC_PARAMS=max_success=1000 max_size=200")
endif()
