# LibTorch from the user's own torch, as the imported target ampscope::torch.
#
# Not find_package(Torch): on a CUDA build of torch it demands a complete CUDA toolkit of the same version, and nothing
# here includes a CUDA header.

if(NOT AMPSCOPE_TORCH_DIR)
  # pip (scikit-build-core) says which Python it installs for; it need not be the one on PATH.
  if(SKBUILD)
    set(AMPSCOPE_PYTHON "${Python3_EXECUTABLE}" CACHE FILEPATH "Python whose torch is used")
  endif()
  find_program(AMPSCOPE_PYTHON NAMES python3 python DOC "Python whose torch is used")
  if(AMPSCOPE_PYTHON)
    # find_spec instead of import: it costs milliseconds, not seconds.
    execute_process(
      COMMAND ${AMPSCOPE_PYTHON} -c "import importlib.util as u; s=u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE ampscope_torch_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
else()
  set(ampscope_torch_found ${AMPSCOPE_TORCH_DIR})
endif()

if(NOT ampscope_torch_found OR NOT EXISTS "${ampscope_torch_found}/include/ATen/record_function.h")
  if(ampscope_torch_found)
    set(ampscope_torch_found " in ${ampscope_torch_found}")
  endif()
  message(FATAL_ERROR
    "No torch with headers was found${ampscope_torch_found}. Activate a virtual environment that has one "
    "(pip install torch==2.13.0), pass -DAMPSCOPE_TORCH_DIR=<folder of the torch package>, or build the analysis side "
    "alone with -DAMPSCOPE_BUILD_PROBE=OFF. With pip: pip install --no-build-isolation ., so that it sees your torch.")
endif()

file(STRINGS "${ampscope_torch_found}/include/torch/headeronly/version.h" ampscope_version_lines
     REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
if(NOT ampscope_version_lines AND EXISTS "${ampscope_torch_found}/include/torch/csrc/api/include/torch/version.h")
  file(STRINGS "${ampscope_torch_found}/include/torch/csrc/api/include/torch/version.h" ampscope_version_lines
       REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
endif()
string(REGEX MATCH "VERSION_MAJOR ([0-9]+)" _ "${ampscope_version_lines}")
set(AMPSCOPE_TORCH_MAJOR ${CMAKE_MATCH_1})
string(REGEX MATCH "VERSION_MINOR ([0-9]+)" _ "${ampscope_version_lines}")
set(AMPSCOPE_TORCH_MINOR ${CMAKE_MATCH_1})
set(AMPSCOPE_TORCH_VERSION "${AMPSCOPE_TORCH_MAJOR}.${AMPSCOPE_TORCH_MINOR}")
if(NOT AMPSCOPE_TORCH_MAJOR EQUAL 2 OR AMPSCOPE_TORCH_MINOR LESS 11 OR AMPSCOPE_TORCH_MINOR GREATER 15)
  message(FATAL_ERROR
    "torch ${AMPSCOPE_TORCH_VERSION} in ${ampscope_torch_found} is not supported; ampscope supports torch 2.11 to 2.15. "
    "Install one of these, for example: pip install torch==2.13.0")
endif()
message(STATUS "torch ${AMPSCOPE_TORCH_VERSION}: ${ampscope_torch_found}")

set(AMPSCOPE_TORCH_ROOT ${ampscope_torch_found})
add_library(ampscope_torch INTERFACE)
add_library(ampscope::torch ALIAS ampscope_torch)
target_include_directories(ampscope_torch SYSTEM INTERFACE
  ${ampscope_torch_found}/include ${ampscope_torch_found}/include/torch/csrc/api/include)
# NDEBUG in every configuration: at::RecordFunction has a member under #ifndef NDEBUG in its middle, and the shipped
# libraries are built with NDEBUG. Without it every accessor would read from a wrong offset.
target_compile_definitions(ampscope_torch INTERFACE NDEBUG)
target_link_directories(ampscope_torch INTERFACE ${ampscope_torch_found}/lib)
target_link_libraries(ampscope_torch INTERFACE torch torch_cpu c10)

# The Python that this torch belongs to: <prefix>/lib/pythonX.Y/site-packages/torch → <prefix>/bin. A LibTorch on its own has
# none; what needs one is left out then.
if(NOT AMPSCOPE_TORCH_PYTHON)
  find_program(AMPSCOPE_TORCH_PYTHON NAMES python3 python NO_DEFAULT_PATH
               PATHS "${ampscope_torch_found}/../../../../bin" DOC "Python that has the torch in AMPSCOPE_TORCH_DIR")
  if(NOT AMPSCOPE_TORCH_PYTHON AND NOT AMPSCOPE_TORCH_DIR)
    set(AMPSCOPE_TORCH_PYTHON ${AMPSCOPE_PYTHON})
  endif()
endif()
