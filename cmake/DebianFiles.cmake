# What Debian wants of a package besides its files, put in before CPack packs: the licence and the list of changes under their names,
# manuals packed, and which of lintian's remarks do not hold.
file(GLOB packages LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(root ${packages})
  if(NOT IS_DIRECTORY ${root}/usr)
    continue()
  endif()
  cmake_path(GET root FILENAME component)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(doc ${root}/usr/share/doc/${package})
  file(REMOVE ${doc}/LICENSE)
  file(WRITE ${doc}/copyright "Copyright 2026 the developers of benanza\n\n"
       "benanza is free software under the Apache License, version 2.0:\n/usr/share/common-licenses/Apache-2.0\n\n"
       "The pages that it writes hold Chart.js (Debian: libjs-chart.js), copyright its\ncontributors, under the MIT licence.\n")
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${doc}/changelog "${package} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
       "  * CHANGELOG.md.gz in /usr/share/doc/benanza tells what is new.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
  file(GLOB_RECURSE packed ${root}/usr/share/man/*.1 ${doc}/changelog ${doc}/CHANGELOG.md)
  execute_process(COMMAND gzip -9nf ${packed} COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS ${root}/usr/share/zsh/site-functions) # Debian keeps that for /usr/local
    file(RENAME ${root}/usr/share/zsh/site-functions ${root}/usr/share/zsh/vendor-completions)
  endif()
  set(overrides ${CMAKE_CURRENT_LIST_DIR}/${package}.lintian-overrides)
  if(EXISTS ${overrides})
    file(MAKE_DIRECTORY ${root}/usr/share/lintian/overrides)
    file(COPY_FILE ${overrides} ${root}/usr/share/lintian/overrides/${package})
  endif()
endforeach()
