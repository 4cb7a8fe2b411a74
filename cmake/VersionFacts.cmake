# The facts of --version, in an object library isomer_version_facts that every program links. The
# commit is looked up at every build, and written when it is another one.
#
# With -P, this is the script that writes the source:
#   cmake -DOUT=SOURCE -DROOT=TREE -DFACTS=NAME=VALUE,.. -P VersionFacts.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  # Not the repository of someone else, in which the tree of a release may lie.
  set(commit "")
  if(EXISTS ${ROOT}/.git)
    execute_process(COMMAND git -C ${ROOT} describe --always --abbrev=12 --exclude=* --dirty
                    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REPLACE "-dirty" " and changes" commit "${commit}")
  endif()
  if(commit STREQUAL "")
    set(commit "unknown")
  endif()
  set(text "// Made by cmake/VersionFacts.cmake.\n#include \"pcg/support/version.h\"\n\n"
           "namespace isomer {\n\nVersionFacts BuiltVersions() {\n  return {\n")
  list(JOIN text "" text)
  string(REPLACE "," ";" FACTS "${FACTS}")
  list(INSERT FACTS 1 "commit=${commit}")
  foreach(fact ${FACTS})
    string(REGEX REPLACE "^([a-z0-9]+)=(.*)$" "      {\"\\1\", \"\\2\"},\n" line "${fact}")
    string(APPEND text "${line}")
  endforeach()
  string(APPEND text "  };\n}\n\n}  // namespace isomer\n")
  # Only if it has changed.
  file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)
  return()
endif()

file(STRINGS ${ISOMER_DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines REGEX "VERSION_M|_PATCH")
string(REGEX REPLACE "[^0-9]+" "." onednn "${lines}")
string(REGEX REPLACE "^\\." "" onednn "${onednn}")
set(mpi "without")
if(MPI_FOUND)
  set(mpi "Open MPI ${MPI_VERSION}")
endif()
# Nothing of CUDA is linked: its libraries are opened when they are asked for.
set(cuda "without a toolkit")
if(CUDAToolkit_FOUND)
  set(cuda "${CUDAToolkit_VERSION}")
endif()
set(sanitizers "")
if(ISOMER_SANITIZE)
  string(REPLACE "," " and " sanitizers " with sanitizers ${ISOMER_SANITIZE}")
endif()
set(facts "version=${PROJECT_VERSION}"
    "compiler=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "build=${CMAKE_BUILD_TYPE}${sanitizers}"
    "protobuf=${Protobuf_VERSION}"
    "abseil=${absl_VERSION}"
    "z3=${Z3_VERSION}"
    "onednn=${onednn}"
    "mpi=${mpi}"
    "cuda=${cuda}")
list(JOIN facts "," facts)
set(out ${PROJECT_BINARY_DIR}/version_facts.cc)
add_custom_target(isomer_version_facts_source
  COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DROOT=${PROJECT_SOURCE_DIR} -DFACTS=${facts}
          -P ${PROJECT_SOURCE_DIR}/cmake/VersionFacts.cmake
  BYPRODUCTS ${out}
  COMMENT "the version of programs"
  VERBATIM)
add_library(isomer_version_facts OBJECT ${out})
add_dependencies(isomer_version_facts isomer_version_facts_source)
target_include_directories(isomer_version_facts PRIVATE ${PROJECT_SOURCE_DIR})
