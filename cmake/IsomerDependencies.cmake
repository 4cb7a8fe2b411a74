# Everything that Isomer links, found once and visible in every folder.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
# The MODULE finder: Debian's protobuf 3.21 ships no CMake config.
find_package(Protobuf MODULE REQUIRED)

find_package(PkgConfig REQUIRED)
pkg_check_modules(Z3 REQUIRED IMPORTED_TARGET z3)

# Rationals: the numbers of rules, steps and proofs (pcg/evaluation/exact_number.h).
find_library(ISOMER_GMP_LIBRARY gmp REQUIRED)
find_library(ISOMER_GMPXX_LIBRARY gmpxx REQUIRED)
find_path(ISOMER_GMP_INCLUDE_DIR gmpxx.h REQUIRED)
add_library(isomer_gmp INTERFACE)
target_link_libraries(isomer_gmp INTERFACE ${ISOMER_GMPXX_LIBRARY} ${ISOMER_GMP_LIBRARY})
target_include_directories(isomer_gmp SYSTEM INTERFACE ${ISOMER_GMP_INCLUDE_DIR})

# oneDNN's own CMake config asks for OpenCL headers, which the cpu kernels do not need.
find_library(ISOMER_DNNL_LIBRARY dnnl REQUIRED)
find_path(ISOMER_DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
add_library(isomer_dnnl INTERFACE)
target_link_libraries(isomer_dnnl INTERFACE ${ISOMER_DNNL_LIBRARY})
target_include_directories(isomer_dnnl SYSTEM INTERFACE ${ISOMER_DNNL_INCLUDE_DIR})

# A third of the time of a search was the C library's malloc and free: programs that search link
# this. Sanitizers have their own.
find_library(ISOMER_JEMALLOC_LIBRARY NAMES libjemalloc_pic.a jemalloc REQUIRED)
add_library(isomer_malloc INTERFACE)
if(NOT ISOMER_SANITIZE)
  target_link_libraries(isomer_malloc INTERFACE ${ISOMER_JEMALLOC_LIBRARY} Threads::Threads
                                                ${CMAKE_DL_LIBS} m)
  target_sources(isomer_malloc INTERFACE ${PROJECT_SOURCE_DIR}/cmake/malloc_conf.cc)
endif()

# Processes in place of threads, where Open MPI is.
pkg_check_modules(MPI QUIET IMPORTED_TARGET ompi-c)

find_package(GTest CONFIG REQUIRED)
find_package(benchmark CONFIG QUIET)

if(ISOMER_CUDA)
  find_package(CUDAToolkit)
  if(NOT CUDAToolkit_FOUND)
    message(FATAL_ERROR "ISOMER_CUDA is ON but no CUDA toolkit was found: "
                        "put nvcc on the PATH, set CUDAToolkit_ROOT, or set ISOMER_CUDA to OFF")
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  # CMake 3.25 does not know CUDA 20; nvcc itself does.
  set(CMAKE_CUDA_STANDARD 17)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  enable_language(CUDA)
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
endif()
