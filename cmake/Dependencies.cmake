# Everything here is a package of Debian; scripts/packages.sh lists them by package name.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibArchive 3.6 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)

find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
add_library(gloved_xxhash INTERFACE)
target_include_directories(gloved_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
target_link_libraries(gloved_xxhash INTERFACE ${XXHASH_LIBRARY})

find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
add_library(gloved_utf8proc INTERFACE)
target_include_directories(gloved_utf8proc SYSTEM INTERFACE ${UTF8PROC_INCLUDE_DIR})
target_link_libraries(gloved_utf8proc INTERFACE ${UTF8PROC_LIBRARY})

find_path(LIBSYSTEMD_INCLUDE_DIR systemd/sd-daemon.h REQUIRED)
find_library(LIBSYSTEMD_LIBRARY systemd REQUIRED)
add_library(gloved_libsystemd INTERFACE)
target_include_directories(gloved_libsystemd SYSTEM INTERFACE ${LIBSYSTEMD_INCLUDE_DIR})
target_link_libraries(gloved_libsystemd INTERFACE ${LIBSYSTEMD_LIBRARY})

find_package(nlohmann_json 3.9 REQUIRED)

if(NOT GLOVED_FUZZ)
  # By Boost's own file: newer versions of CMake have no other way.
  find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS program_options)
  find_package(spdlog REQUIRED)
endif()
