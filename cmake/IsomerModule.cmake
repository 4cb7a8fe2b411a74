# One CMake target per module. What a target may link is the picture of arrows in
# docs/architecture.md; scripts/check_includes.sh holds the sources to it.

set(ISOMER_ROOT ${PROJECT_SOURCE_DIR})

# What many sources include. None of these headers is ours: a change of it would compile everything
# again.
set(ISOMER_COMMON_HEADERS
  <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <numeric> <optional>
  <set> <string> <tuple> <utility> <vector>
  <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h>
  <absl/strings/match.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
  <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/strings/string_view.h>
  <absl/types/span.h>)

# isomer_precompile_headers(TARGET HEADER...)
# Compiles HEADERs once, for TARGET and for those who reuse them.
function(isomer_precompile_headers target)
  if(ISOMER_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# isomer_reuse_headers(TARGET OWNER)
# TARGET is compiled with the precompiled headers of OWNER. Both must have the same flags; sources
# with others, of optimisation or warnings, need SKIP_PRECOMPILE_HEADERS.
function(isomer_reuse_headers target owner)
  if(ISOMER_PRECOMPILED_HEADERS AND NOT target STREQUAL owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# isomer_protos(TARGET file.proto...)
# Generates C++ for protos of the current folder, so that #include "pcg/ir/pcg.pb.h" works.
# Imports in a .proto are written from the repository root: import "pcg/ir/pcg.proto".
function(isomer_protos target)
  foreach(proto ${ARGN})
    cmake_path(ABSOLUTE_PATH proto BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH proto BASE_DIRECTORY ${ISOMER_ROOT} OUTPUT_VARIABLE relative)
    cmake_path(REMOVE_EXTENSION relative LAST_ONLY OUTPUT_VARIABLE stem)
    set(generated ${PROJECT_BINARY_DIR}/${stem}.pb)
    add_custom_command(
      OUTPUT ${generated}.cc ${generated}.h
      COMMAND protobuf::protoc --proto_path=${ISOMER_ROOT} --cpp_out=${PROJECT_BINARY_DIR}
              --dependency_out=${generated}.d ${proto}
      DEPENDS ${proto}
      DEPFILE ${generated}.d
      COMMENT "protoc ${relative}"
      VERBATIM)
    set_source_files_properties(${generated}.cc PROPERTIES COMPILE_OPTIONS -w
                                                           SKIP_PRECOMPILE_HEADERS ON)
    target_sources(${target} PRIVATE ${generated}.cc ${generated}.h)
  endforeach()
endfunction()

# isomer_unity(TARGET SOURCE...)
# Compiles the SOURCEs of one folder several at a time, so that headers are read once for all of
# them: of 6 at a time the programs took 5 min 18 s on two cores instead of 9 min 33 s, without
# ccache; 14 take a tenth less (isomer_pcg 166 s of CPU in place of 187). After a change of one file
# those beside it are compiled again, too: -DISOMER_UNITY=OFF for who edits much. Sources with
# options of their own are compiled alone.
option(ISOMER_UNITY "Compile several sources of a folder at a time" ON)
set(ISOMER_UNITY_SOURCES 14 CACHE STRING "About so many")
function(isomer_unity target)
  if(NOT ISOMER_UNITY OR NOT ARGN)
    return()
  endif()
  set(folders "")
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "in_${folder}" id)
    list(APPEND folders ${id})
    list(APPEND sources_of_${id} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(id ${folders})
    list(LENGTH sources_of_${id} count)
    math(EXPR groups "(${count} + ${ISOMER_UNITY_SOURCES} - 1) / ${ISOMER_UNITY_SOURCES}")
    set(place 0)
    foreach(source ${sources_of_${id}})
      # Neighbours by name are often large alike: they are dealt out.
      math(EXPR group "${place} % ${groups}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${id}_${group})
      math(EXPR place "${place} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# isomer_module(NAME [SUBFOLDERS folder...] [FILES pattern...] [EXCEPT file...] [DEPENDS target...]
#               [PRIVATE_DEPENDS target...])
# The static library isomer_NAME from every *.cc and *.proto of the current folder and its
# SUBFOLDERS, but for the mains of programs; with FILES from these alone, with EXCEPT from all but
# these. New files are picked up at the next build.
function(isomer_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
                        "SUBFOLDERS;FILES;EXCEPT;DEPENDS;PRIVATE_DEPENDS")
  set(globs *.cc *.proto)
  foreach(folder ${arg_SUBFOLDERS})
    list(APPEND globs ${folder}/*.cc ${folder}/*.proto)
  endforeach()
  if(arg_FILES)
    set(globs ${arg_FILES})
  endif()
  list(TRANSFORM globs PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB files CONFIGURE_DEPENDS ${globs})
  list(TRANSFORM arg_EXCEPT PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(REMOVE_ITEM files ${arg_EXCEPT} "")
  set(sources ${files})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/main_[^/]*\\.cc$|_main\\.cc$")
  set(protos ${files})
  list(FILTER protos INCLUDE REGEX "\\.proto$")

  if(sources OR protos)
    set(scope PUBLIC)
    add_library(isomer_${name} STATIC ${sources})
    isomer_unity(isomer_${name} ${sources})
    target_link_libraries(isomer_${name} PRIVATE ${arg_PRIVATE_DEPENDS})
    isomer_reuse_headers(isomer_${name} isomer_pcg)
  else()
    set(scope INTERFACE)
    add_library(isomer_${name} INTERFACE)
  endif()
  target_include_directories(isomer_${name} ${scope} ${ISOMER_ROOT})
  # SYSTEM: generated headers are not held to our warnings.
  target_include_directories(isomer_${name} SYSTEM ${scope} ${PROJECT_BINARY_DIR})
  target_link_libraries(isomer_${name} ${scope} ${arg_DEPENDS})
  isomer_protos(isomer_${name} ${protos})
endfunction()

# The programs without the tests and benchmarks: what a user builds.
add_custom_target(programs)

# isomer_program(NAME SOURCES file... [DEPENDS target...])
# A program in ${CMAKE_BINARY_DIR}/bin; nothing when its first source does not exist.
function(isomer_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  list(GET arg_SOURCES 0 main)
  file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${main})
  if(NOT found)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  isomer_unity(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} isomer_version_facts)
  isomer_reuse_headers(${name} isomer_pcg)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  add_dependencies(programs ${name})
  set_property(GLOBAL APPEND PROPERTY ISOMER_PROGRAMS ${name})
endfunction()

# Tests take longer to compile than to run: in a release they are optimised less than the modules
# that they link.
set(ISOMER_TEST_OPTIONS "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>")

# isomer_test(FOLDER [EXCEPT file...] [DEPENDS target...])
# One test executable from tests/FOLDER/**/*.cc, but for those that are left out, its cases
# registered with ctest by name.
# Tests find the tree by the macros ISOMER_SOURCE_DIR and ISOMER_BIN_DIR (the programs).
function(isomer_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT;DEPENDS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ISOMER_ROOT}/tests/${folder}/*.cc)
  list(TRANSFORM arg_EXCEPT PREPEND ${ISOMER_ROOT}/tests/)
  list(REMOVE_ITEM sources ${arg_EXCEPT} "")
  if(NOT sources)
    return()
  endif()
  set(target isomer_${folder}_test)
  add_executable(${target} ${sources} $<TARGET_OBJECTS:isomer_temporary_folder>)
  target_link_libraries(${target} PRIVATE ${arg_DEPENDS} GTest::gmock GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${ISOMER_ROOT})
  target_compile_options(${target} PRIVATE ${ISOMER_TEST_OPTIONS})
  isomer_unity(${target} ${sources})
  isomer_reuse_headers(${target} isomer_temporary_folder)
  target_compile_definitions(${target} PRIVATE ISOMER_SOURCE_DIR="${ISOMER_ROOT}"
                                               ISOMER_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(properties TIMEOUT 300)
  if(ISOMER_SANITIZE MATCHES "thread")
    list(APPEND properties ENVIRONMENT TSAN_OPTIONS=suppressions=${ISOMER_ROOT}/tests/tsan.supp)
  elseif(ISOMER_SANITIZE)
    list(APPEND properties ENVIRONMENT LSAN_OPTIONS=suppressions=${ISOMER_ROOT}/tests/lsan.supp)
  endif()
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
