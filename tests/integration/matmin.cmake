# gloved-matmin, run as users do.
gloved_add_test(matmin_integration_test
  LABELS integration
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/matmin_program_test.cpp
  LIBRARIES gloved_common ZLIB::ZLIB
  NEEDS gloved-matmin)
