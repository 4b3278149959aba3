vramd_test(programs_touch_test KIND unit SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/programs_touch.cpp LIBRARIES simgpu_twins)
