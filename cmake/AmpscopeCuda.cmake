# nvcc for the CUDA part, and what is compiled with it.
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "AMPSCOPE_CUDA=ON needs nvcc, and none was found. Put it on PATH, pass "
                      "-DCMAKE_CUDA_COMPILER=<nvcc>, or leave AMPSCOPE_CUDA off.")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  # A100, H100/H200, B200; anything newer is compiled from the PTX of the last when it is first used.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100 CACHE STRING "GPU architectures")
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
if(CUDAToolkit_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "The CUDA part is built with nvcc 13.0 or later; this is ${CUDAToolkit_VERSION}.")
endif()

# CMake 3.25 does not know that nvcc 13 speaks C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# ampscope_cuda_objects(<name> SOURCE…): what nvcc compiles, as a target of its own with its own options.
function(ampscope_cuda_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra)
  if(AMPSCOPE_WARNINGS_AS_ERRORS)
    target_compile_options(${name} PRIVATE -Werror=all-warnings -Xcompiler=-Werror)
  endif()
  set_target_properties(${name} PROPERTIES CUDA_VISIBILITY_PRESET hidden CUDA_STANDARD 20)
endfunction()
