gloved_add_test(bench_generate_test
  LABELS unit
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_generate_test.cpp
  LIBRARIES gloved_generate)

gloved_add_test(bench_report_test ONE_THREAD
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/bench_distmat_report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_lists_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_load_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_matmin_report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_rung_check_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_rung_report_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_statistics_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_table_test.cpp
  LIBRARIES gloved_bench_report)

if("gloved-bench" IN_LIST GLOVED_LEAVE_OUT)
  return()
endif()

# Where no rung but v0 can run, the program says so and continues.
add_test(NAME bench_rungs_without_device
  COMMAND gloved-bench --rows 300 --dim 5 --rungs all --repeat 2 --format csv)
set_tests_properties(bench_rungs_without_device PROPERTIES LABELS unit TIMEOUT 60)

# Small, but all of it: what is made is read, what is computed is checked, and what this machine
# lacks is left out.
add_test(NAME bench_distmat COMMAND gloved-bench distmat --rows 50 --dim 7 --repeat 2 --format csv)
add_test(NAME bench_distmat_of_many_rows COMMAND gloved-bench distmat --rows 4200 --dim 3 --rungs
  cpu --repeat 1)
add_test(NAME bench_matmin COMMAND gloved-bench matmin --count 5000 --repeat 2 --type float32)
add_test(NAME bench_matmin_of_integers COMMAND gloved-bench matmin --count 300 --shape 2x20 --type
  int32 --repeat 1 --format csv)
set_tests_properties(bench_distmat bench_distmat_of_many_rows bench_matmin bench_matmin_of_integers
  PROPERTIES
  LABELS unit TIMEOUT 60 FAIL_REGULAR_EXPRESSION "nan|inf")
add_test(NAME bench_distmat_wrong_usage COMMAND gloved-bench distmat --rungs cpu,shared64)
set_tests_properties(bench_distmat_wrong_usage PROPERTIES LABELS unit TIMEOUT 60
  PASS_REGULAR_EXPRESSION
    "--rungs: there is no 'shared64'; there are sequential, cpu, .*see gloved-bench distmat --help")
add_test(NAME bench_matmin_wrong_usage COMMAND gloved-bench matmin --shape 3)
set_tests_properties(bench_matmin_wrong_usage PROPERTIES LABELS unit TIMEOUT 60
  PASS_REGULAR_EXPRESSION
    "--shape takes rows and columns with an x between, as 3x3; see gloved-bench matmin --help")

# Of a GPU's rungs alone nothing is left to measure without one. The variable hides what is there.
add_test(NAME bench_rungs_that_cannot_run COMMAND gloved-bench --rows 300 --dim 5 --rungs v1,v5
  --repeat 1)
set_tests_properties(bench_rungs_that_cannot_run PROPERTIES LABELS unit TIMEOUT 60 ENVIRONMENT
  CUDA_VISIBLE_DEVICES=
  PASS_REGULAR_EXPRESSION "none of these rungs can run here: ")
# Options that would say nothing.
add_test(NAME bench_dim_of_a_model COMMAND gloved-bench --model none --dim 5)
set_tests_properties(bench_dim_of_a_model PROPERTIES LABELS unit TIMEOUT 60
  PASS_REGULAR_EXPRESSION "--dim needs --rows")
add_test(NAME bench_seconds_without_rungs COMMAND gloved-bench --rows 300 --rung-seconds 5)
set_tests_properties(bench_seconds_without_rungs PROPERTIES LABELS unit TIMEOUT 60
  PASS_REGULAR_EXPRESSION "--rung-seconds needs --rungs")
add_test(NAME bench_rate_of_no_load COMMAND gloved-bench --rows 300 --rate 5)
set_tests_properties(bench_rate_of_no_load PROPERTIES LABELS unit TIMEOUT 60
  PASS_REGULAR_EXPRESSION "--rate needs --load")
add_test(NAME bench_load_of_an_engine COMMAND gloved-bench --load none --engine cpu)
set_tests_properties(bench_load_of_an_engine PROPERTIES LABELS unit TIMEOUT 60
  PASS_REGULAR_EXPRESSION "--engine cannot be used with --load")
add_test(NAME bench_load_of_no_verb COMMAND gloved-bench --load none --mix near=1,quit)
set_tests_properties(bench_load_of_no_verb PROPERTIES LABELS unit TIMEOUT 60
  PASS_REGULAR_EXPRESSION "--mix: there is no 'quit'; there are near, ")
