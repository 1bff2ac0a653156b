if("gloved-bench" IN_LIST GLOVED_LEAVE_OUT)
  return()
endif()

gloved_add_test(bench_load_test
  LABELS integration
  SOURCES bench_load_test.cpp
    client_fake_daemon.cpp
  LIBRARIES gloved_common Threads::Threads
  NEEDS gloved gloved-bench gloved-convert)
