# CUDA is optional. The toolkit is looked for where FindCUDAToolkit does (PATH, CUDA_PATH,
# /usr/local/cuda); with its nvcc the cuda engine is built, with its headers alone still the tests
# of the engine's host code. Sets GLOVED_HAVE_NVCC and GLOVED_HAVE_CUDA_HEADERS.
set(GLOVED_CUDA "auto" CACHE STRING
  "auto: build the cuda engine where nvcc 12 or newer is found; on: fail without it; host: only \
tests of its host code, by CUDA's headers; off")
set_property(CACHE GLOVED_CUDA PROPERTY STRINGS auto on host off)
set(GLOVED_CUDA_ARCHITECTURES "all" CACHE STRING
  "all: 75 to the newest that this nvcc knows, and PTX; native; or as CMAKE_CUDA_ARCHITECTURES")

set(GLOVED_HAVE_NVCC OFF)
set(GLOVED_HAVE_CUDA_HEADERS OFF)
string(TOLOWER "${GLOVED_CUDA}" gloved_cuda)
if(gloved_cuda STREQUAL "off")
  message(STATUS "cuda engine: not built (GLOVED_CUDA=off)")
  return()
endif()

find_package(CUDAToolkit 12.0 QUIET)
if(CUDAToolkit_FOUND)
  set(GLOVED_HAVE_CUDA_HEADERS ON)
endif()
if(gloved_cuda STREQUAL "host")
  message(STATUS "cuda engine: not built (GLOVED_CUDA=host)")
  return()
endif()
# Sanitizers and nvcc's host code do not mix; the host code of the engine is tested under them
# through the fake runtime.
if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND NOT GLOVED_SANITIZE)
  if(NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  # Which architectures an nvcc knows; within a major version, code for a smaller minor one runs
  # too.
  if(GLOVED_CUDA_ARCHITECTURES STREQUAL "all")
    set(gloved_architectures 75-real 80-real 86-real 89-real 90-real)
    set(gloved_newest 90)
    if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
      list(APPEND gloved_architectures 100-real 120-real)
      set(gloved_newest 120)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${gloved_architectures} 90-virtual ${gloved_newest}-virtual)
    list(REMOVE_DUPLICATES CMAKE_CUDA_ARCHITECTURES)
  elseif(GLOVED_CUDA_ARCHITECTURES STREQUAL "native" AND CMAKE_VERSION VERSION_LESS 3.24)
    message(FATAL_ERROR
      "GLOVED_CUDA_ARCHITECTURES=native needs CMake 3.24; name the architecture: 90 for an H100")
  else()
    set(CMAKE_CUDA_ARCHITECTURES ${GLOVED_CUDA_ARCHITECTURES})
  endif()
  # An nvcc may be there and not work with this compiler: no reason to fail where CUDA was not
  # insisted on.
  include(CheckLanguage)
  check_language(CUDA)
endif()

if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  if(GLOVED_CUDA_ARCHITECTURES STREQUAL "native" AND NOT CMAKE_CUDA_ARCHITECTURES_NATIVE)
    message(FATAL_ERROR
      "This machine has no GPU that nvcc could ask for its architecture. Name one, as \
-DGLOVED_CUDA_ARCHITECTURES=90 for an H100, or build for every GPU: \
-DGLOVED_CUDA_ARCHITECTURES=all")
  endif()
  # Debian 12's CMake does not know yet that nvcc 12 and newer take it.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  # nvcc's host compiler may be an older g++. The C++ compiler links programs, and must not find
  # that one's standard library.
  foreach(directory IN LISTS CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES)
    if(directory MATCHES "/gcc/" AND NOT directory IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      list(REMOVE_ITEM CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES ${directory})
    endif()
  endforeach()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(GLOVED_HAVE_NVCC ON)
  message(STATUS
    "cuda engine: CUDA ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
elseif(gloved_cuda STREQUAL "on")
  message(FATAL_ERROR
    "GLOVED_CUDA=on needs nvcc of CUDA 12 or newer: add it to PATH or set CUDAToolkit_ROOT")
else()
  message(STATUS "cuda engine: not built (no nvcc of CUDA 12 or newer, or a sanitizer build)")
endif()
