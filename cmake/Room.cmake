# bz_room(NAME [ROOMS name...] [PACKAGES pkg...] [LIBRARIES lib...])
# A room is a folder of C files that becomes the static library benanza_NAME.
function(bz_room name)
  cmake_parse_arguments(ARG "" "" "ROOMS;PACKAGES;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${name}/*.c)
  add_library(benanza_${name} STATIC ${sources})
  foreach(room ${ARG_ROOMS})
    target_link_libraries(benanza_${name} PUBLIC benanza_${room})
  endforeach()
  foreach(package ${ARG_PACKAGES})
    pkg_check_modules(${package} REQUIRED IMPORTED_TARGET ${package})
    target_link_libraries(benanza_${name} PRIVATE PkgConfig::${package})
  endforeach()
  target_link_libraries(benanza_${name} PUBLIC ${ARG_LIBRARIES})
endfunction()

# bz_embed(TARGET FILE SYMBOL): the text of FILE becomes `const char SYMBOL[]` in TARGET.
function(bz_embed target file symbol)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(out ${CMAKE_BINARY_DIR}/embedded/${symbol}.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${out} -DSYMBOL=${symbol}
            -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

# bz_schema(ROOM/NAME.proto): the room, and what includes "ROOM/NAME.pb-c.h", gets the messages that the file describes.
function(bz_schema file)
  find_program(PROTOC_C protoc-c REQUIRED) # Debian: protobuf-c-compiler
  cmake_path(GET file PARENT_PATH room)
  cmake_path(REPLACE_EXTENSION file LAST_ONLY pb-c OUTPUT_VARIABLE name)
  set(folder ${CMAKE_BINARY_DIR}/schema)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${folder}/${name}.c ${folder}/${name}.h
    COMMAND ${PROTOC_C} --c_out=${folder} --proto_path=${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/${file}
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} VERBATIM)
  target_sources(benanza_${room} PRIVATE ${folder}/${name}.c ${folder}/${name}.h)
  set_source_files_properties(${folder}/${name}.c PROPERTIES COMPILE_OPTIONS -w)
  target_include_directories(benanza_${room} SYSTEM PUBLIC ${folder})
endfunction()
