# Builds for Debian on aarch64 with Debian's cross compiler, and runs what it built in qemu-user.
# GLOVED_SYSROOT: a directory with Debian's libraries for arm64, as scripts/aarch64 makes it.
if(NOT IS_DIRECTORY "${GLOVED_SYSROOT}")
  message(FATAL_ERROR "GLOVED_SYSROOT='${GLOVED_SYSROOT}' is no directory")
endif()
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GLOVED_SYSROOT)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT ${GLOVED_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${GLOVED_SYSROOT})

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
