# Exports, read back by gloved-convert. With gensim and NumPy: tests/scale/export_round_trip.py.
gloved_add_test(export_integration_test
  LABELS integration
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/export_program_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/export_test.cpp
  LIBRARIES gloved_export gloved_common
  NEEDS gloved-convert gloved-verify)
