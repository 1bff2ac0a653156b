# What a Debian package has otherwise than `cmake --install`: run by CPack on the tree that it is about to pack.
set(root ${CPACK_TEMPORARY_DIRECTORY})
set(share ${root}/usr/share)
set(doc ${share}/doc/${CPACK_PACKAGE_NAME})

# Debian has the licence in one place for all packages; the file copyright points there, and tells where the sample comes from.
file(REMOVE ${share}/doc/gloved/LICENSE ${share}/gloved/README.md)

# Where Debian's zsh looks.
file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)

# -n: no time in them, so that the same sources give the same package.
file(GLOB compressed ${share}/man/man*/*.[0-9] ${doc}/changelog ${doc}/changelog.Debian)
execute_process(COMMAND gzip -9n ${compressed} COMMAND_ERROR_IS_FATAL ANY)

# The compiler's name in every program is of no use.
file(GLOB programs ${root}/usr/bin/*)
foreach(program ${programs})
  execute_process(COMMAND strip --remove-section=.comment --remove-section=.note ${program} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
