# Debian packages by CPack, as scripts/package makes them: gloved without the cuda engine,
# gloved-cuda with it. They hold the same files and take each other's place. packaging/python makes
# python3-gloved.

execute_process(COMMAND ${PROJECT_SOURCE_DIR}/packaging/version
  OUTPUT_VARIABLE gloved_version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
include(cmake/DebianVersion.cmake)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${gloved_package_release})

if(GLOVED_HAVE_NVCC)
  set(CPACK_PACKAGE_NAME gloved-cuda)
  set(gloved_package_build 
"This build searches on NVIDIA GPUs, of compute capability 7.5 and up, and on
processors. It needs the driver alone, and without one it uses the processor.")
  set(CPACK_DEBIAN_PACKAGE_PROVIDES "gloved (= ${gloved_package_version})")
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS gloved)
  set(CPACK_DEBIAN_PACKAGE_REPLACES gloved)
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "nvidia-driver, haproxy, python3-gloved")
else()
  set(CPACK_PACKAGE_NAME gloved)
  set(gloved_package_build "This build searches on processors; gloved-cuda does so on GPUs too.")
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS gloved-cuda)
  set(CPACK_DEBIAN_PACKAGE_REPLACES gloved-cuda)
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "haproxy, python3-gloved")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_NAME ${CPACK_PACKAGE_NAME})
set(CPACK_PACKAGE_VERSION ${gloved_version})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "exact nearest-word queries over GloVe embeddings")
set(CPACK_PACKAGE_DESCRIPTION
"A daemon keeps GloVe word vectors in memory and answers one-line requests for
the nearest words on a Unix socket; a client asks it from the shell, and a
converter makes its models of downloads. Answers are exact, and the same bytes
on every machine.
.
${gloved_package_build}")
set(CPACK_PACKAGE_VENDOR gloved)
set(CPACK_PACKAGE_CONTACT "gloved maintainers <maintainers@gloved.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# Maintainer scripts make the user and the directories with these, running systemd or not.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
  "systemd (>= 252) | systemd-standalone-sysusers, systemd (>= 252) | systemd-standalone-tmpfiles")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(gloved_packaging ${PROJECT_SOURCE_DIR}/packaging)
file(READ ${gloved_packaging}/remove_models.sh gloved_remove_models)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${gloved_packaging}/remove_models.sh)
foreach(script postinst prerm postrm)
  configure_file(${gloved_packaging}/${script}.in ${PROJECT_BINARY_DIR}/packaging/${script} @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
      WORLD_EXECUTE)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packaging/${script})
endforeach()
list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${gloved_packaging}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${gloved_packaging}/finish.cmake)

# Files that only a Debian package has: a component that `cmake --install` leaves out.
set(gloved_package_doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_PACKAGE_NAME})
configure_file(${gloved_packaging}/changelog.in ${PROJECT_BINARY_DIR}/packaging/changelog.Debian
  @ONLY)
install(FILES ${gloved_packaging}/copyright ${PROJECT_BINARY_DIR}/packaging/changelog.Debian
  DESTINATION ${gloved_package_doc}
  COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${gloved_package_doc} RENAME changelog
  COMPONENT debian EXCLUDE_FROM_ALL)
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};${PROJECT_NAME};ALL;/" "${PROJECT_BINARY_DIR};${PROJECT_NAME};debian;/")

include(CPack)
