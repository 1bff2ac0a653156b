# gloved-client against a scripted daemon inside the test.
gloved_add_test(client_integration_test ONE_THREAD SHARDS 2
  LABELS integration
  SOURCES client_fake_daemon.cpp client_lines_test.cpp client_original_test.cpp
    client_program_test.cpp client_retry_test.cpp
  LIBRARIES gloved_common Threads::Threads
  NEEDS gloved-client)
