# Distances: their definition and engines, and what gloved-distmat is made of.
gloved_add_test(distance_test
  SLOW_SANITIZED "*.GivesTheBytesOfThePlainLoop/baseline:${all_simd_but_one}"
  LABELS unit
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/distance_engine_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/distance_prepare_test.cpp)

gloved_add_test(distmat_parts_test
  LABELS unit
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/distmat_parts_test.cpp
  LIBRARIES gloved_distmat gloved_matrix gloved_source ZLIB::ZLIB)
