# The fuzz targets over their corpora, as tests of a build with the address sanitizer. scripts/fuzz
# looks for new inputs.

set(gloved_fuzz_seeds ${CMAKE_BINARY_DIR}/fuzz_seeds)
foreach(format archive model)
  add_executable(make_${format}_seeds fuzz/make_${format}_seeds.cpp)
  target_link_libraries(make_${format}_seeds PRIVATE gloved_options gloved_common
    LibArchive::LibArchive ZLIB::ZLIB)
  set_target_properties(make_${format}_seeds PROPERTIES RUNTIME_OUTPUT_DIRECTORY
    ${CMAKE_BINARY_DIR}/tests)
  file(MAKE_DIRECTORY ${gloved_fuzz_seeds}/${format})
  add_test(NAME fuzz_seeds.${format}
    COMMAND make_${format}_seeds ${gloved_fuzz_seeds}/${format})
  set_tests_properties(fuzz_seeds.${format} PROPERTIES FIXTURES_SETUP fuzz_${format} LABELS unit)
endforeach()

# gloved_add_replay(NAME LIBRARY …)
function(gloved_add_replay name)
  add_executable(replay_${name} fuzz/fuzz_${name}.cpp fuzz/replay.cpp)
  target_link_libraries(replay_${name} PRIVATE gloved_options gloved_common fmt::fmt ${ARGN})
  set_target_properties(replay_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
    ${CMAKE_BINARY_DIR}/tests)
  gloved_share_precompiled(replay_${name} gloved_precompiled)
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  if(NOT IS_DIRECTORY ${corpus})
    set(corpus ${gloved_fuzz_seeds}/${name})
  endif()
  add_test(NAME fuzz_corpus.${name} COMMAND replay_${name} ${corpus})
  set_tests_properties(fuzz_corpus.${name} PROPERTIES FIXTURES_REQUIRED fuzz_${name} LABELS unit
    TIMEOUT 120)
endfunction()

gloved_add_replay(expression)
gloved_add_replay(wire)
gloved_add_replay(model)
gloved_add_replay(matmin gloved_matmin_source)
gloved_add_replay(array gloved_source)
gloved_add_replay(text gloved_source ZLIB::ZLIB)
gloved_add_replay(word2vec_bin gloved_source)
gloved_add_replay(archive gloved_source)
gloved_add_replay(distmat gloved_matrix gloved_source gloved_kernels ZLIB::ZLIB)
