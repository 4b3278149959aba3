vramd_test(shim_settings_test KIND unit SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/shim_settings_test.cpp
           ${CMAKE_SOURCE_DIR}/shim/client/settings.cpp ${CMAKE_SOURCE_DIR}/shim/client/log.cpp LIBRARIES vramd_base)
vramd_test(shim_connection_test KIND unit LABELS threads SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/shim_connection_test.cpp
           ${CMAKE_SOURCE_DIR}/shim/client/connection.cpp
           ${CMAKE_SOURCE_DIR}/shim/client/line.cpp ${CMAKE_SOURCE_DIR}/shim/client/log.cpp
           LIBRARIES vramd_protocol Threads::Threads)
vramd_test(shim_source_test KIND unit LABELS threads SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/shim_source_test.cpp
           ${CMAKE_SOURCE_DIR}/shim/client/chunk_source.cpp ${CMAKE_SOURCE_DIR}/shim/client/connection.cpp
           ${CMAKE_SOURCE_DIR}/shim/client/line.cpp
           ${CMAKE_SOURCE_DIR}/shim/client/settings.cpp ${CMAKE_SOURCE_DIR}/shim/client/log.cpp
           LIBRARIES vramd_protocol vramd_driver Threads::Threads)
