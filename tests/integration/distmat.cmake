# gloved-distmat, run as a user would.
gloved_add_test(distmat_integration_test
  LABELS integration
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/distmat_test.cpp
  LIBRARIES ZLIB::ZLIB
  NEEDS gloved-convert gloved-distmat)
