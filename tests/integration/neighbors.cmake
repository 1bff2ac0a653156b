# gloved-neighbors, run as a user would.
gloved_add_test(neighbors_integration_test
  LABELS integration
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/neighbors_test.cpp
  LIBRARIES gloved_oracle gloved_common
  NEEDS gloved-neighbors gloved-verify gloved-make-hard-model)

if(GLOVED_HAVE_MPI)
  gloved_add_test(neighbors_mpi_integration_test
    LABELS integration
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/neighbors_mpi_test.cpp
    LIBRARIES gloved_common
    NEEDS gloved-neighbors gloved-neighbors-mpi)
endif()
