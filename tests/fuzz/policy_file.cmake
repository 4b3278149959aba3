if(VRAMD_SANITIZE MATCHES "fuzzer")
  add_executable(policy_file_fuzz ${CMAKE_SOURCE_DIR}/tests/fuzz/policy_file_fuzz.cpp)
  target_link_libraries(policy_file_fuzz PRIVATE vramd_policy_file)
  target_link_options(policy_file_fuzz PRIVATE -fsanitize=fuzzer)
  set_target_properties(policy_file_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME policy_file_fuzz
    COMMAND policy_file_fuzz -runs=200000 -max_total_time=30 -max_len=2048
            ${CMAKE_BINARY_DIR}/tests/policy_file_corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/policy_file)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/tests/policy_file_corpus)  # new inputs go here, not into the source
  set_tests_properties(policy_file_fuzz PROPERTIES LABELS fuzz TIMEOUT 120)
endif()
