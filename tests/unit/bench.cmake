gloved_add_test(bench_generate_test
  LABELS unit
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_generate_test.cpp
  LIBRARIES gloved_generate)

gloved_add_test(bench_report_test ONE_THREAD
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/bench_lists_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_rung_check_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_rung_report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_statistics_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_svg_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_table_test.cpp
  LIBRARIES gloved_bench_report)

# Where no rung but v0 can run, the program says so and goes on.
add_test(NAME bench_rungs_without_device
  COMMAND gloved-bench --rows 300 --dim 5 --rungs all --repeat 2 --format csv)
set_tests_properties(bench_rungs_without_device PROPERTIES LABELS unit TIMEOUT 60)
