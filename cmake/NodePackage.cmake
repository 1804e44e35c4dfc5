# Installs or builds a node package in the build tree, as a step of the build: cmake -DSTEP=packages|build … -P this.
#   SOURCE  the package: package.json, package-lock.json, .npmrc and its sources
#   BUILD   where it is copied to, installed and built
#   OUTPUT  what STEP=build makes
#   NODE, NPM

get_filename_component(node_folder ${NODE} DIRECTORY)
set(ENV{PATH} "${node_folder}:$ENV{PATH}")  # npm and what it starts must find this node, not another one

function(run_npm)
  execute_process(COMMAND ${NPM} ${ARGN} WORKING_DIRECTORY ${BUILD} RESULT_VARIABLE status
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " words)
    message("${output}")
    message(FATAL_ERROR "npm ${words} failed in ${BUILD}. Without a network, build with -DAMPSCOPE_BUILD_VIEWER=OFF: "
                        "everything but the HTML report works.")
  endif()
endfunction()

file(MAKE_DIRECTORY ${BUILD})
if(STEP STREQUAL "packages")
  file(COPY ${SOURCE}/package.json ${SOURCE}/package-lock.json ${SOURCE}/.npmrc DESTINATION ${BUILD})
  # No script of a package is needed, so none is run.
  run_npm(ci --ignore-scripts --no-audit --no-fund)
  file(WRITE ${BUILD}/packages.stamp "")
elseif(STEP STREQUAL "build")
  file(REMOVE_RECURSE ${BUILD}/src ${OUTPUT})
  file(GLOB sources LIST_DIRECTORIES true ${SOURCE}/*)
  list(FILTER sources EXCLUDE REGEX "/(node_modules|dist)$")
  file(COPY ${sources} DESTINATION ${BUILD})
  run_npm(run build)
  file(TOUCH ${OUTPUT})
else()
  message(FATAL_ERROR "STEP is \"${STEP}\"; it is packages or build")
endif()
