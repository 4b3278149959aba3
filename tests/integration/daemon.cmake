# The real vramd on the simulated GPU, spoken to by a raw client.
foreach(group grants ends hostile service)
  add_test(NAME integration_daemon_${group}
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/integration/daemon_${group}.py)
  set_tests_properties(integration_daemon_${group} PROPERTIES LABELS "integration;threads" TIMEOUT 180 ENVIRONMENT
    "VRAMD_TEST_DAEMON=$<TARGET_FILE:vramd>;VRAMD_TEST_SIM_DIR=$<TARGET_FILE_DIR:simgpu_libcuda>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
