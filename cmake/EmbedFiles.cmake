# isomer_embed_page(TARGET FOLDER)
# Compiles the page of FOLDER/web, with d3 and dagre of the distribution, into TARGET as the
# constants of FOLDER/page_files.h. Without the packages these are empty, and kMissingPagePackages
# names them.
#
# With -P, this is the script that writes the source:
#   cmake -DOUT=SOURCE -DHEADER=H -DMISSING=PACKAGES -DHTML=FILE -DSTYLE=FILE -DSCRIPTS=FILE,..
#         -P EmbedFiles.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  set(end ")isomer_page\"")
  function(isomer_constant name)
    set(value "")
    foreach(file ${ARGN})
      file(READ "${file}" contents)
      string(FIND "${contents}" "${end}" found)
      # What ends a script element early would end the page's.
      string(FIND "${contents}" "</script" found_script)
      if(NOT found EQUAL -1 OR (name STREQUAL "kPageScripts" AND NOT found_script EQUAL -1))
        message(FATAL_ERROR "${file} cannot be embedded: it has '${end}' or '</script'")
      endif()
      # Compilers limit the length of one literal; adjacent ones are one.
      string(APPEND value "\n    R\"isomer_page(${contents})isomer_page\"")
    endforeach()
    if(value STREQUAL "")
      set(value " \"\"")
    endif()
    file(APPEND ${OUT}.new "const absl::string_view ${name} =${value};\n")
  endfunction()
  string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
  file(WRITE ${OUT}.new "// Made by cmake/EmbedFiles.cmake.\n#include \"${HEADER}\"\n\n"
                        "namespace isomer {\n\n")
  isomer_constant(kPageHtml ${HTML})
  isomer_constant(kPageStyle ${STYLE})
  isomer_constant(kPageScripts ${SCRIPTS})
  string(REPLACE "," ", " MISSING "${MISSING}")
  file(APPEND ${OUT}.new
       "const absl::string_view kMissingPagePackages = \"${MISSING}\";\n\n}  // namespace isomer\n")
  file(RENAME ${OUT}.new ${OUT})
  return()
endif()

find_file(ISOMER_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3
          NO_DEFAULT_PATH)
find_file(ISOMER_DAGRE dagre.min.js PATHS /usr/share/nodejs/dagre/dist NO_DEFAULT_PATH)

function(isomer_embed_page target folder)
  set(missing "")
  if(NOT ISOMER_D3)
    list(APPEND missing node-d3)
  endif()
  if(NOT ISOMER_DAGRE)
    list(APPEND missing node-dagre-layout)
  endif()
  set(web ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/web)
  file(GLOB own CONFIGURE_DEPENDS ${web}/*.js)
  # Each file adds to one object; main.js, which draws the page, comes last.
  list(REMOVE_ITEM own ${web}/page.js ${web}/main.js)
  set(html ${web}/page.html)
  set(style ${web}/page.css)
  set(scripts ${ISOMER_D3} ${ISOMER_DAGRE} ${web}/page.js ${own} ${web}/main.js)
  if(missing)
    list(JOIN missing ", " names)
    message(STATUS "isomer-optimize is built without --report: ${names} not found "
                   "(scripts/install_dependencies.sh)")
    set(html "")
    set(style "")
    set(scripts "")
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${ISOMER_ROOT}
             OUTPUT_VARIABLE module)
  set(out ${PROJECT_BINARY_DIR}/${module}/${folder}/page_files.cc)
  list(JOIN scripts "," list)
  list(JOIN missing "," missing)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DHEADER=${module}/${folder}/page_files.h
            -DMISSING=${missing} -DHTML=${html} -DSTYLE=${style} -DSCRIPTS=${list}
            -P ${ISOMER_ROOT}/cmake/EmbedFiles.cmake
    DEPENDS ${ISOMER_ROOT}/cmake/EmbedFiles.cmake ${html} ${style} ${scripts}
    COMMENT "the page of reports"
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
