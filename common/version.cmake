# Writes version.hpp with what packaging/version prints; leaves it alone if it has that already.
# cmake -DOUT=FILE -P version.cmake
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../packaging/version
  OUTPUT_VARIABLE gloved_version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
# The time of the last change is for packages: it would link all programs after every edit.
string(REGEX REPLACE "\\.changed.*" ".changed" gloved_version "${gloved_version}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.hpp.in ${OUT} @ONLY)
