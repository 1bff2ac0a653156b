# The languages that people and programs speak to gloved: expressions, requests, replies, the
# original protocol.
gloved_add_test(expr_test ONE_THREAD
  LABELS unit
  SOURCES expr_expression_test.cpp expr_token_test.cpp
  LIBRARIES gloved_common)

gloved_add_test(wire_test ONE_THREAD
  LABELS unit
  SOURCES wire_json_string_test.cpp wire_line_splitter_test.cpp wire_reply_framer_test.cpp
    wire_reply_test.cpp wire_request_line_test.cpp wire_request_test.cpp
  LIBRARIES gloved_common nlohmann_json::nlohmann_json)

gloved_add_test(cli_test ONE_THREAD
  LABELS unit
  SOURCES cli_command_line_test.cpp
  LIBRARIES gloved_cli)

gloved_add_test(client_test ONE_THREAD
  LABELS unit
  SOURCES client_input_lines_test.cpp client_original_protocol_test.cpp
    client_original_session_test.cpp client_query_line_test.cpp
    client_reply_reader_test.cpp client_reply_table_test.cpp
  LIBRARIES gloved_client_lib gloved_common)
