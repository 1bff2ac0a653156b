# gloved-verify, and its messages about faults of models (verify_damage_test.cpp: of files).
gloved_add_test(verify_integration_test
  NIGHTLY_ASAN VerifyAudit.FindsEveryAnswerThatWasChangedAndNoOther
  LABELS integration
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/verify_audit_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/verify_download_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/verify_engines_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/verify_recorded_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/verify_values_test.cpp
  LIBRARIES gloved_verify gloved_common nlohmann_json::nlohmann_json
  NEEDS gloved gloved-client gloved-convert gloved-verify)

if(GLOVED_HAVE_CUDA_HEADERS)
  gloved_add_test(verify_cuda_test
    LABELS integration
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/verify_cuda_test.cpp
    LIBRARIES gloved_verify gloved_fake_cuda
    KERNELS gloved_kernels_fake)
endif()
