# The kinds of thing this project consists of, one function each.

set(AMPSCOPE_SANITIZE "" CACHE STRING "Sanitizers for our own code, as -fsanitize takes them")

add_library(ampscope_options INTERFACE)
target_include_directories(ampscope_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(ampscope_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
# g++ 12 sees overlapping copies in std::string of its own library where it inlines all (-O3): https://gcc.gnu.org/PR105651
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(ampscope_options INTERFACE -Wno-restrict)
endif()
if(AMPSCOPE_WARNINGS_AS_ERRORS)
  target_compile_options(ampscope_options INTERFACE -Werror)
endif()
if(AMPSCOPE_SANITIZE)
  target_compile_options(ampscope_options INTERFACE -fsanitize=${AMPSCOPE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(ampscope_options INTERFACE -fsanitize=${AMPSCOPE_SANITIZE})
endif()

find_program(AMPSCOPE_CCACHE ccache)
if(AMPSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this a file with a precompiled header is never kept.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${AMPSCOPE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${AMPSCOPE_CCACHE})
endif()

# ampscope_library(<name> SOURCES … [LINK …]): a static library of ours, included as "folder/header.h" from the root.
function(ampscope_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ampscope_options PUBLIC ${arg_LINK})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
endfunction()

# ampscope_test(<name> SOURCES … LINK … [LABELS …]): a GoogleTest program, each of its tests a test of ctest.
function(ampscope_test name)
  if(NOT AMPSCOPE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ampscope_options ${arg_LINK} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  include(GoogleTest)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300)
endfunction()
