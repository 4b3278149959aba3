if(rapidcheck_FOUND)
  vramd_test(policy_robust_test KIND property
    SOURCES ${CMAKE_SOURCE_DIR}/tests/property/policy_robust.cpp
    LIBRARIES vramd_policy_file rapidcheck ENVIRONMENT RC_PARAMS=max_success=1000)
endif()
