# What people get besides the programs: documents, completions, the Python module; `uninstall`; and with `cpack -G DEB` the packages benanza, and
# benanza-cuda where the CUDA toolkit is. Included last: the components of all that is installed are known.
file(GLOB manuals CONFIGURE_DEPENDS docs/*.1)
file(GLOB documents CONFIGURE_DEPENDS docs/*.md docs/*.png)
install(FILES ${manuals} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
install(FILES cli/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME benanza)
install(FILES cli/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME benanza.fish)
install(FILES cli/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _benanza)

# Where python3 looks: a Debian package has a folder for all versions of Python 3, /usr/local one for each. The prefix is known
# when it is installed.
install(CODE "
  set(version 3)
  if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    execute_process(COMMAND python3 -c \"import sys; print('%d.%d' % sys.version_info[:2])\"
                    OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(version)
    file(INSTALL \"${CMAKE_SOURCE_DIR}/python/benanza.py\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/python\${version}/dist-packages\")
  endif()")

add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
                            -P ${CMAKE_SOURCE_DIR}/cmake/Uninstall.cmake VERBATIM)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The developers of benanza <benanza@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/DebianFiles.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)

set(CPACK_COMPONENTS_ALL benanza)
set(CPACK_DEBIAN_BENANZA_PACKAGE_NAME benanza)
set(CPACK_DEBIAN_BENANZA_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_BENANZA_DESCRIPTION "tells how fast a neural network could run on this machine
It reads ONNX models, benchmarks their layers with every implementation that
the libraries of this machine have, sums up how fast the model could run,
and tells what keeps a program from running that fast. It also records what
a program really does, and keeps measurements of many machines.")
set(CPACK_DEBIAN_BENANZA_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# `benanza bound` compiles the benchmarks that it runs, and their runtime has a part in C++.
set(CPACK_DEBIAN_BENANZA_PACKAGE_DEPENDS
    "g++, cmake, ninja-build | make, libdnnl-dev, libopenblas-dev, libbenchmark-dev, libhwloc-dev")
set(CPACK_DEBIAN_BENANZA_PACKAGE_RECOMMENDS "libgvc6 | libgvc7, python3")
set(CPACK_DEBIAN_BENANZA_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/prerm)

# Its libraries may come from packages of NVIDIA or from an installer that dpkg knows nothing of: none is a dependency.
if(TARGET benanza-cudnn)
  find_package(CUDAToolkit QUIET)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME benanza-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION contrib/devel)
set(CPACK_DEBIAN_CUDA_DESCRIPTION "lets benanza measure and record on GPUs of NVIDIA
With this package benanza benchmarks cuDNN, cuBLAS and cuBLASLt, and records
what a program does on a GPU: its calls, kernels, copies and waits.
The libraries of CUDA ${CUDAToolkit_VERSION_MAJOR} and of cuDNN 9 must be there.")
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "benanza (= ${PROJECT_VERSION}), libc6")
include(CPack)
