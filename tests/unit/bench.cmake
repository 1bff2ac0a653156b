gloved_add_test(bench_generate_test
  LABELS unit
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_generate_test.cpp
  LIBRARIES gloved_generate)

gloved_add_test(bench_report_test ONE_THREAD
  LABELS unit
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/bench_load_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/bench_report_test.cpp
  LIBRARIES gloved_bench_report)

if("gloved-bench" IN_LIST GLOVED_LEAVE_OUT)
  return()
endif()

# Small, but all of it: what is made is read, what is computed is checked, and what this machine
# lacks is left out.
add_test(NAME bench_distmat COMMAND gloved-bench distmat --rows 50 --dim 7 --repeat 2 --format csv)
add_test(NAME bench_distmat_of_many_rows COMMAND gloved-bench distmat --rows 4200 --dim 3 --engines
  cpu --repeat 1)
add_test(NAME bench_matmin COMMAND gloved-bench matmin --count 5000 --repeat 2 --type float32)
add_test(NAME bench_matmin_of_integers COMMAND gloved-bench matmin --count 300 --shape 2x20 --type
  int32 --repeat 1 --format csv)
set_tests_properties(bench_distmat bench_distmat_of_many_rows bench_matmin bench_matmin_of_integers
  PROPERTIES
  LABELS unit TIMEOUT 60 FAIL_REGULAR_EXPRESSION "nan|inf")

# gloved_add_refusal(NAME STATUS PATTERN ARGUMENT…): gloved-bench ends so, and says why.
function(gloved_add_refusal name status pattern)
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/refuses ${status} "${pattern}"
    $<TARGET_FILE:gloved-bench> ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 60
    ENVIRONMENT "${gloved_without_gpu}")
endfunction()

gloved_add_refusal(bench_matmin_wrong_usage 2
  "--shape takes rows and columns with an x between, as 3x3; see gloved-bench matmin --help"
  matmin --shape 3)
# The museum's kernels need a GPU, or a build with CUDA.
gloved_add_refusal(bench_museum_without_device 1 "CUDA|device" museum search --rows 300)
gloved_add_refusal(bench_no_subcommand 2 "there is no subcommand .engine.: there are engines, load"
  engine)
gloved_add_refusal(bench_leak_queries 2 "--leak-queries is gone: tests/scale/leak.py"
  engines --rows 300 --leak-queries 5)
gloved_add_refusal(bench_dim_of_a_model 2 "--dim needs --rows" engines --model none --dim 5)
# Accepted for one more release.
gloved_add_refusal(bench_engines_by_options 2 "for one more release: use gloved-bench engines$"
  --model none --dim 5)
gloved_add_refusal(bench_load_by_options 1 "for one more release: use gloved-bench load SOCKET$"
  --mix ping --load=none)
