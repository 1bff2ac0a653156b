# The version of Debian packages made on this system, and its suite, from gloved_version:
# gloved_package_version and gloved_suite.

# The version names the release that the package was built on, as Debian's own stable updates do:
# ~ sorts before nothing, so the package of the next release is an upgrade.
cmake_host_system_information(RESULT gloved_host QUERY DISTRIB_INFO)
set(gloved_package_release 1)
set(gloved_suite unstable)
if("${gloved_host_ID} ${gloved_host_VERSION_ID}" MATCHES "^debian [0-9]+$")
  string(APPEND gloved_package_release "~deb${gloved_host_VERSION_ID}u1")
  set(gloved_suite ${gloved_host_VERSION_CODENAME})
elseif("${gloved_host_ID} ${gloved_host_VERSION_ID}" MATCHES "^ubuntu [0-9.]+$")
  string(APPEND gloved_package_release "~ubuntu${gloved_host_VERSION_ID}.1")
  set(gloved_suite ${gloved_host_VERSION_CODENAME})
endif()
set(gloved_package_version ${gloved_version}-${gloved_package_release})
