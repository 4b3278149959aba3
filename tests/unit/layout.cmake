add_test(NAME layout_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/unit/layout_test.py ${CMAKE_SOURCE_DIR})
set_tests_properties(layout_test PROPERTIES LABELS unit TIMEOUT 60)
