# find_package(benanza-runtime): the target benanza::benanza_runtime, which has main.
include(${CMAKE_CURRENT_LIST_DIR}/RuntimeLibraries.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/benanza-runtime-targets.cmake)

# benanza_module(TARGET NAME): the backend NAME, which is loaded at run time, is put beside the program. $BENANZA_MODULES is a folder
# that is looked in first, as the program does.
function(benanza_module target name)
  set(file)
  set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  foreach(folder $ENV{BENANZA_MODULES} ${here}/.. ${here}/../../../libexec/benanza ${here}/../../../../libexec/benanza)
    if(NOT file AND EXISTS ${folder}/benanza-${name}.so)
      set(file ${folder}/benanza-${name}.so)
    endif()
  endforeach()
  if(NOT file)
    message(FATAL_ERROR "this benanza has no backend ${name}: build it on a machine with the CUDA toolkit and cuDNN")
  endif()
  file(REAL_PATH ${file} file)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${file} $<TARGET_FILE_DIR:${target}>/benanza-${name}.so)
endfunction()
