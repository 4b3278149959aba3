# The gate in front of GPU submissions, and the list of what passes it.
vramd_test(unit_gate KIND unit LABELS threads SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/gate_test.cpp
           LIBRARIES vramd_shim Threads::Threads ${CMAKE_DL_LIBS})
add_test(NAME submission_list COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/unit/submission_test.py
         ${CMAKE_CXX_COMPILER} ${CMAKE_SOURCE_DIR} ${VRAMD_CUDA_INCLUDE})
set_tests_properties(submission_list PROPERTIES LABELS unit TIMEOUT 60 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
