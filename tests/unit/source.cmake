# Tests of tools/source: what reads downloads.
gloved_add_test(source_unit_test
  SLOW_SANITIZED Source.PassesOverLinesThatAreTooLong:Zip.RefusesADirectoryThatIsTooLarge*
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/source_array_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_blanks_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_detect_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_input_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_line_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_number_sizes_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_pipeline_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_record_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_source_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/source_stanford_test.cpp
  LIBRARIES gloved_source LibArchive::LibArchive ZLIB::ZLIB nlohmann_json::nlohmann_json)
