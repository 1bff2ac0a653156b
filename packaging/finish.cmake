# Turns an installed tree into a Debian package's: CPack runs this before it packs the tree.
set(root ${CPACK_TEMPORARY_DIRECTORY})
set(share ${root}/usr/share)
set(doc ${share}/doc/${CPACK_PACKAGE_NAME})

# The file copyright points to Debian's own copy of the licence.
file(REMOVE ${share}/doc/gloved/LICENSE)
set(readme ${share}/doc/gloved/README.md)
file(READ ${readme} page)
string(REPLACE "](LICENSE)" "](../${CPACK_PACKAGE_NAME}/copyright)" page "${page}")
file(WRITE ${readme} "${page}")

# Where Debian's zsh looks.
file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)

# -n stores no time, so that the same sources give the same package.
file(GLOB compressed ${share}/man/man*/*.[0-9] ${doc}/changelog ${doc}/changelog.Debian)
execute_process(COMMAND gzip -9n ${compressed} COMMAND_ERROR_IS_FATAL ANY)

# Programs do not need the compiler's name.
file(GLOB programs ${root}/usr/bin/*)
foreach(program ${programs})
  execute_process(COMMAND strip --remove-section=.comment --remove-section=.note ${program}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
