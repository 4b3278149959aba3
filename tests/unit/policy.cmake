vramd_test(policy_file_test KIND unit
  SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/policy_bad_files.cpp ${CMAKE_SOURCE_DIR}/tests/unit/policy_values.cpp
  LIBRARIES vramd_policy_file)

# The schema for editors and the parser agree on every example and on a list of small files.
add_executable(policy_verdict ${CMAKE_SOURCE_DIR}/tests/support/policy_verdict.cpp)
target_link_libraries(policy_verdict PRIVATE vramd_policy_file)
set_target_properties(policy_verdict PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME policy_schema_agrees
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/unit/policy_schema_agrees.py
          $<TARGET_FILE:policy_verdict> ${CMAKE_SOURCE_DIR}/config)
set_tests_properties(policy_schema_agrees PROPERTIES LABELS unit TIMEOUT 60 SKIP_RETURN_CODE 77)
