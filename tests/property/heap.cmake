if(rapidcheck_FOUND)
  vramd_test(placement_property_test KIND property SOURCES ${CMAKE_SOURCE_DIR}/tests/property/placement_test.cpp
             LIBRARIES vramd_heap rapidcheck)
endif()
