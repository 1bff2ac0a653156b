# Headers that most files include, parsed once. .ci/check_includes, which does without them, shows
# that each file includes what it uses.
option(GLOVED_PRECOMPILE_HEADERS "Parse the headers that most files include once" OFF)

set(gloved_common_headers <algorithm> <array> <atomic> <chrono> <cmath> <cstddef> <cstdint>
  <cstring> <functional> <limits> <memory> <optional> <span> <string> <string_view> <utility>
  <vector> <fmt/format.h>)
set(gloved_test_headers ${gloved_common_headers} <filesystem> <random> <thread> <gtest/gtest.h>)

# gloved_precompile(NAME OPTIONS-target HEADER…): a target that others share the headers of.
function(gloved_precompile name options)
  if(NOT GLOVED_PRECOMPILE_HEADERS)
    return()
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE gloved_options ${options})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# gloved_share_precompiled(TARGET NAME): what gloved_precompile(NAME …) made, if it is switched on.
function(gloved_share_precompiled target name)
  if(GLOVED_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()
