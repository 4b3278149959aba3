add_test(NAME setup_test COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/integration/setup_test.py ${CMAKE_SOURCE_DIR}/tools)
set_tests_properties(setup_test PROPERTIES LABELS integration TIMEOUT 60)
