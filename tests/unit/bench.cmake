gloved_add_test(bench_generate_test
  LABELS unit
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_generate_test.cpp
  LIBRARIES gloved_generate)
