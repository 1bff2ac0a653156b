# gloved-convert and gloved-verify, run as a user would.
gloved_add_test(convert_integration_test SHARDS 2
  SLOW_SANITIZED VerifyDamage.*
  NIGHTLY_ASAN MadeText.*:Purge.*:VerifyPlanes.*:VerifySource.*
  LABELS integration
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/convert_odd_inputs_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_several_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/convert_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/made_text_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/purge_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/verify_damage_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/verify_source_test.cpp
  LIBRARIES gloved_common LibArchive::LibArchive ZLIB::ZLIB nlohmann_json::nlohmann_json
  NEEDS gloved-convert gloved-make-text gloved-neighbors gloved-verify)

# Hundreds of small conversions, each a line of odd_files.tsv.
# Sanitizers see odd files in source_unit_test and the fuzz corpora too.
gloved_add_test(odd_files_test NIGHTLY_ASAN *
  LABELS integration
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/odd_files.cpp ${CMAKE_CURRENT_LIST_DIR}/odd_files_test.cpp
  LIBRARIES gloved_common LibArchive::LibArchive ZLIB::ZLIB nlohmann_json::nlohmann_json
  NEEDS gloved-convert gloved-verify)
