# isomer_code_digest(TARGET HEADER NAME VARIABLE [NAME VARIABLE ..])
# Generates HEADER, below the build folder, for TARGET: a constant NAME for each list of files that
# a VARIABLE holds (paths from the top), the digest of their names and contents. Results that are
# kept under such a digest are those of this code.
#
# With -P, this is the script that writes the header:
#   cmake -DOUT=HEADER -DROOT=TREE -DNAMES=NAME,.. -DNAME=FILE,.. .. -P CodeDigest.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made by cmake/CodeDigest.cmake: digests of the code that results depend on.\n")
  string(APPEND text "#pragma once\n\n")
  string(REPLACE "," ";" NAMES "${NAMES}")
  foreach(name ${NAMES})
    set(digests "")
    string(REPLACE "," ";" files "${${name}}")
    foreach(file ${files})
      file(SHA256 ${ROOT}/${file} digest)
      string(APPEND digests "${file} ${digest}\n")
    endforeach()
    string(SHA256 digest "${digests}")
    string(SUBSTRING ${digest} 0 16 digest)
    string(APPEND text "inline constexpr char ${name}[] = \"${digest}\";\n")
  endforeach()
  # Only if it has changed.
  file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)
  return()
endif()

function(isomer_code_digest target header)
  set(names "")
  set(definitions "")
  set(inputs ${ISOMER_ROOT}/cmake/CodeDigest.cmake)
  while(ARGN)
    list(POP_FRONT ARGN name variable)
    list(APPEND names ${name})
    list(JOIN ${variable} "," files)
    list(APPEND definitions "-D${name}=${files}")
    foreach(file ${${variable}})
      list(APPEND inputs ${ISOMER_ROOT}/${file})
    endforeach()
  endwhile()
  list(JOIN names "," names)
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/${header}
    COMMAND ${CMAKE_COMMAND} -DOUT=${PROJECT_BINARY_DIR}/${header} -DROOT=${ISOMER_ROOT}
            -DNAMES=${names} ${definitions} -P ${ISOMER_ROOT}/cmake/CodeDigest.cmake
    DEPENDS ${inputs}
    WORKING_DIRECTORY ${ISOMER_ROOT}
    COMMENT "digests of code: ${header}"
    VERBATIM)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/${header})
endfunction()

# The sources in FOLDERS (not below them) but for mains and those that match EXCEPT, as paths from
# the top.
function(isomer_sources_of result)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;EXCEPT")
  set(files "")
  foreach(folder ${arg_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS RELATIVE ${ISOMER_ROOT} ${ISOMER_ROOT}/${folder}/*.cc
         ${ISOMER_ROOT}/${folder}/*.h)
    list(APPEND files ${found})
  endforeach()
  list(FILTER files EXCLUDE REGEX "_main\\.cc$")
  foreach(pattern ${arg_EXCEPT})
    list(FILTER files EXCLUDE REGEX ${pattern})
  endforeach()
  set(${result} ${files} PARENT_SCOPE)
endfunction()
