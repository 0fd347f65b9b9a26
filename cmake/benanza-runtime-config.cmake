# find_package(benanza-runtime): the target benanza::benanza_runtime, which has main.
include(${CMAKE_CURRENT_LIST_DIR}/RuntimeLibraries.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/benanza-runtime-targets.cmake)
