if(rapidcheck_FOUND)
  vramd_test(property_traces KIND property SOURCES ${CMAKE_SOURCE_DIR}/tests/property/traces_round_trip.cpp
             LIBRARIES vramd_traces rapidcheck)
endif()
