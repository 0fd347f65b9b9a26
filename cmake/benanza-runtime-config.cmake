# find_package(benanza-runtime): the target benanza::benanza_runtime, which has main.
include(${CMAKE_CURRENT_LIST_DIR}/RuntimeLibraries.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/benanza-runtime-targets.cmake)

# benanza_module(TARGET NAME): the backend NAME, which is loaded at run time, is put beside the program.
function(benanza_module target name)
  set(file)
  foreach(up .. ../../../libexec/benanza ../../../../libexec/benanza)
    if(EXISTS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${up}/benanza-${name}.so)
      set(file ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${up}/benanza-${name}.so)
    endif()
  endforeach()
  if(NOT file)
    message(FATAL_ERROR "this benanza has no backend ${name}: build it on a machine with the CUDA toolkit and cuDNN")
  endif()
  file(REAL_PATH ${file} file)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${file} $<TARGET_FILE_DIR:${target}>/benanza-${name}.so)
endfunction()
