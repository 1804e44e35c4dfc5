# Node, for the page of the HTML report and its tests. Looked for anew at each configuration: what was missing or too old
# may have been installed since.
find_program(AMPSCOPE_NODE node NO_CACHE)
find_program(AMPSCOPE_NPM npm NO_CACHE)
set(AMPSCOPE_NODE_VERSION 0)
if(AMPSCOPE_NODE)
  execute_process(COMMAND ${AMPSCOPE_NODE} --version OUTPUT_VARIABLE AMPSCOPE_NODE_VERSION
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX REPLACE "^v" "" AMPSCOPE_NODE_VERSION "${AMPSCOPE_NODE_VERSION}")
endif()
set(AMPSCOPE_NODE_USABLE OFF)
if(AMPSCOPE_NPM AND AMPSCOPE_NODE_VERSION VERSION_GREATER_EQUAL 20.19)
  set(AMPSCOPE_NODE_USABLE ON)
endif()

# ampscope_node_packages(<source> <build>): installs the packages that <source>/package-lock.json names into <build>, as
# the file <build>/packages.stamp. Nothing is written to the source folder: several build folders may share it.
function(ampscope_node_packages source build)
  add_custom_command(
    OUTPUT ${build}/packages.stamp
    COMMAND ${CMAKE_COMMAND} -DNODE=${AMPSCOPE_NODE} -DNPM=${AMPSCOPE_NPM} -DSOURCE=${source} -DBUILD=${build}
            -DSTEP=packages -P ${PROJECT_SOURCE_DIR}/cmake/NodePackage.cmake
    DEPENDS ${source}/package.json ${source}/package-lock.json ${source}/.npmrc ${PROJECT_SOURCE_DIR}/cmake/NodePackage.cmake
    COMMENT "Installing the packages of ${source}" VERBATIM)
endfunction()

# ampscope_node_build(<source> <build> <output> <file>…): makes <output> by `npm run build` in <build>, on a copy of
# <source>, when one of the files has changed.
function(ampscope_node_build source build output)
  ampscope_node_packages(${source} ${build})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DNODE=${AMPSCOPE_NODE} -DNPM=${AMPSCOPE_NPM} -DSOURCE=${source} -DBUILD=${build}
            -DOUTPUT=${output} -DSTEP=build -P ${PROJECT_SOURCE_DIR}/cmake/NodePackage.cmake
    DEPENDS ${build}/packages.stamp ${ARGN}
    COMMENT "Building ${output}" VERBATIM)
endfunction()
