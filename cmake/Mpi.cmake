# MPI is optional: gloved-neighbors-mpi is built with it, and nothing else links it. Sets
# GLOVED_HAVE_MPI.
set(GLOVED_MPI "auto" CACHE STRING
  "auto: build gloved-neighbors-mpi where MPI is found; on: fail without it; off")
set_property(CACHE GLOVED_MPI PROPERTY STRINGS auto on off)

set(GLOVED_HAVE_MPI OFF)
string(TOLOWER "${GLOVED_MPI}" gloved_mpi)
if(gloved_mpi STREQUAL "off")
  message(STATUS "gloved-neighbors-mpi: not built (GLOVED_MPI=off)")
  return()
endif()

# Sanitizers report what MPI's libraries do. A cross compiler would find this machine's MPI.
if(NOT GLOVED_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  # The bindings for C++ were removed from the standard.
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(MPI_CXX_FOUND)
  set(GLOVED_HAVE_MPI ON)
  message(STATUS "gloved-neighbors-mpi: MPI ${MPI_CXX_VERSION}")
elseif(gloved_mpi STREQUAL "on")
  message(FATAL_ERROR
    "GLOVED_MPI=on needs MPI, such as libopenmpi-dev, and a build without sanitizers for this "
    "machine")
else()
  message(STATUS "gloved-neighbors-mpi: not built (no MPI, a sanitizer, or another machine)")
endif()
