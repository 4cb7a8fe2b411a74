# The Python that the package is built for and tested with, and whether it can be built at all:
# ISOMER_BUILDS_PYTHON. Without pybind11 all else is built, and a line says what is missing.
#
# Python3_EXECUTABLE chooses it. Else it is the first of python3 on the PATH and the distribution's
# that has NumPy, with which the package is tested: an environment that was made for something else
# has none.
set(ISOMER_BUILDS_PYTHON OFF)
if(NOT ISOMER_PYTHON)
  return()
endif()
if(ISOMER_SANITIZE OR ISOMER_FUZZ)
  message(STATUS "the Python package is not built with sanitizers: python3 itself has none")
  return()
endif()

if(NOT Python3_EXECUTABLE)
  find_program(ISOMER_PATH_PYTHON3 python3)
  foreach(candidate ${ISOMER_PATH_PYTHON3} /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import numpy" RESULT_VARIABLE failed
                    OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(Python3_EXECUTABLE ${candidate} CACHE FILEPATH "Python of the package and its tests")
      break()
    endif()
  endforeach()
endif()
find_package(Python3 COMPONENTS Interpreter Development.Module)
find_path(ISOMER_PYBIND11_INCLUDE_DIR pybind11/pybind11.h)

set(missing "")
if(NOT Python3_FOUND)
  list(APPEND missing python3-dev)
endif()
if(NOT ISOMER_PYBIND11_INCLUDE_DIR)
  list(APPEND missing pybind11-dev)
endif()
if(missing)
  list(JOIN missing ", " missing)
  message(STATUS "the Python package is not built: ${missing} not found "
                 "(scripts/install_dependencies.sh)")
  return()
endif()
set(ISOMER_BUILDS_PYTHON ON)

# The module is a shared library of all that the programs are made of. Hidden symbols cannot be
# replaced from outside, so that programs are as fast as without. Not by CMake's properties, which
# give libraries and programs unlike flags: these share precompiled headers.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-fvisibility=hidden;-fvisibility-inlines-hidden>")
