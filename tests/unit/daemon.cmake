vramd_test(unit_daemon KIND unit LABELS threads
           SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/daemon_cgroup.cpp ${CMAKE_SOURCE_DIR}/tests/unit/daemon_rules.cpp
                   ${CMAKE_SOURCE_DIR}/tests/unit/daemon_values.cpp ${CMAKE_SOURCE_DIR}/tests/unit/daemon_broker.cpp
           LIBRARIES vramd_daemon)
