vramd_test(traces_test KIND unit
  SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/traces_reader.cpp ${CMAKE_SOURCE_DIR}/tests/unit/traces_writer.cpp
          ${CMAKE_SOURCE_DIR}/tests/unit/traces_generate.cpp ${CMAKE_SOURCE_DIR}/tests/unit/traces_statistics.cpp
  LIBRARIES vramd_traces)

# Needs the recorded traces: VRAMD_TRACES=<their folder>.
vramd_test(traces_recorded_test KIND unit SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/traces_recorded.cpp LIBRARIES vramd_traces)
set_tests_properties(traces_recorded_test PROPERTIES SKIP_REGULAR_EXPRESSION "VRAMD_TRACES is not set")

add_test(NAME traces_usage_test COMMAND vramd-trace --bogus)
set_tests_properties(traces_usage_test PROPERTIES LABELS unit TIMEOUT 60 PASS_REGULAR_EXPRESSION "^vramd-trace: ")
