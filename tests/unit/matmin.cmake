# gloved-matmin's library: what makes matrices, reads them and writes the result.
gloved_add_test(matmin_unit_test
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/matmin_generate_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/matmin_npy_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/matmin_text_test.cpp
  LIBRARIES gloved_matmin_generate gloved_matmin_source gloved_matmin_result)
