# Tests of tools/convert's library, of the progress line and of the golden bytes in FORMAT.md.
gloved_add_test(convert_unit_test
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/convert_detect_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_input_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_key_sort_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_line_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_pipeline_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_progress_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_record_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_row_buckets_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_source_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_stanford_test.cpp
  LIBRARIES gloved_source ZLIB::ZLIB gloved_libzip)

gloved_add_test(format_unit_test ONE_THREAD
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/format_golden_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/format_publish_test.cpp
  LIBRARIES gloved_common
  NEEDS gloved-convert)
