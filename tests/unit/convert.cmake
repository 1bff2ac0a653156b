# Tests of how tools/convert sorts rows, of the progress line and of the golden bytes in FORMAT.md.
gloved_add_test(convert_unit_test
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/convert_key_sort_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_progress_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_row_buckets_test.cpp
  LIBRARIES gloved_buckets)

gloved_add_test(format_unit_test ONE_THREAD
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/format_golden_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/format_neighbors_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/format_publish_test.cpp
  LIBRARIES gloved_common
  NEEDS gloved-convert gloved-neighbors)
