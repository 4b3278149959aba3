# trainer and replay on the simulated GPU, without the shim: what other tests rely on when they run them.
if(TARGET trainer AND TARGET replay AND TARGET vramd-trace AND NOT VRAMD_SANITIZE)
  add_test(NAME programs_simulated
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/integration/programs_simulated.py)
  set_tests_properties(programs_simulated PROPERTIES LABELS integration TIMEOUT 120
    ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/support;PYTHONDONTWRITEBYTECODE=1")
endif()

# What a GPU punishes, the simulated one does.
if(TARGET crimes AND NOT VRAMD_SANITIZE)
  add_test(NAME simgpu_crimes
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/integration/simgpu_crimes.py)
  set_tests_properties(simgpu_crimes PROPERTIES LABELS integration TIMEOUT 120
    ENVIRONMENT "VRAMD_BUILD=${CMAKE_BINARY_DIR};PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/support;PYTHONDONTWRITEBYTECODE=1")
endif()
