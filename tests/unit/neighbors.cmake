# What gloved-neighbors makes of its lists.
gloved_add_test(neighbors_unit_test
  LABELS unit
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/neighbors_graph_test.cpp
  LIBRARIES gloved_neighbors gloved_common)
