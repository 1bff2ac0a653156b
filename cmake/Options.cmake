# What every target of the project is compiled with, and nothing that leaks into a user of its
# headers.
add_library(gloved_options INTERFACE)

target_include_directories(gloved_options INTERFACE ${PROJECT_SOURCE_DIR})

set(gloved_warnings -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual
  -Wcast-align -Wformat=2)
# g++ 12 and 13 warn wrongly of code of the standard library and of fmt once they have inlined it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  list(APPEND gloved_warnings -Wno-array-bounds -Wno-stringop-overflow)
  # At -O3 alone, of sums of strings.
  target_compile_options(gloved_options INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-restrict>)
endif()
# An answer must not depend on whether a compiler fuses a multiply and an add (the exactness
# contract).
list(JOIN gloved_warnings "," gloved_host_warnings)
target_compile_options(gloved_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${gloved_warnings};-Wpedantic;-ffp-contract=off>"
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffp-contract=off,${gloved_host_warnings}>")

if(GLOVED_WERROR)
  target_compile_options(gloved_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Werror>" "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()

if(GLOVED_SANITIZE)
  target_compile_options(gloved_options INTERFACE
    -fsanitize=${GLOVED_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(gloved_options INTERFACE -fsanitize=${GLOVED_SANITIZE})
endif()

# gloved_add_library(NAME SOURCES …): a static library of one folder, built for what links it.
function(gloved_add_library name)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(${name} PRIVATE gloved_options fmt::fmt)
  gloved_share_precompiled(${name} gloved_precompiled)
endfunction()

# Where programs can be started: scripts stand there for those that need an emulator.
set(GLOVED_START_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set(GLOVED_START_DIRECTORY ${CMAKE_BINARY_DIR}/run)
endif()

# gloved_add_program(NAME SOURCES …): an installed program of one folder.
function(gloved_add_program name)
  add_executable(${name} ${ARGN})
  if(name IN_LIST GLOVED_LEAVE_OUT)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
    file(GENERATE OUTPUT ${GLOVED_START_DIRECTORY}/${name}
      CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:${name}> \"$@\"\n"
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
        WORLD_EXECUTE)
  endif()
  target_link_libraries(${name} PRIVATE gloved_options fmt::fmt)
  gloved_share_precompiled(${name} gloved_precompiled)
  install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
