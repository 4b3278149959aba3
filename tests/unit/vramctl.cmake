vramd_test(vramctl_parts_test KIND unit SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/vramctl_parts.cpp LIBRARIES vramd_vramctl)
