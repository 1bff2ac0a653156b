# Writes control and changelog.Debian into OUT:
# cmake -DOUT=DIR -Dgloved_version=VERSION -P configure.cmake
get_filename_component(source ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
include(${source}/cmake/DebianVersion.cmake)
configure_file(${CMAKE_CURRENT_LIST_DIR}/control.in ${OUT}/control @ONLY)
configure_file(${source}/packaging/changelog.in ${OUT}/changelog.Debian @ONLY)
