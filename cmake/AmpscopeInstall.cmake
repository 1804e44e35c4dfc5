# What `cmake --install` and pip put into the places that AmpscopeLayout names, besides the command itself.

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)

if(NOT AMPSCOPE_BUILD_PROBE)
  return()
endif()

set(ampscope_python ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/python)
install(TARGETS ampscope_preload LIBRARY DESTINATION ${ampscope_install_lib})
if(TARGET ampscope_probe)
  install(TARGETS ampscope_probe_torch${AMPSCOPE_TORCH_VERSION} LIBRARY DESTINATION ${ampscope_install_lib})
endif()
if(TARGET ampscope_cuda)
  install(TARGETS ampscope_cuda LIBRARY DESTINATION ${ampscope_install_lib})
endif()
install(DIRECTORY ${ampscope_python} DESTINATION ${ampscope_install_lib} PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/probe/api/ampscope DESTINATION ${ampscope_install_include})

configure_file(${PROJECT_SOURCE_DIR}/cmake/ampscopeConfig.cmake.in ${CMAKE_BINARY_DIR}/ampscopeConfig.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ampscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ampscopeConfig.cmake ${CMAKE_BINARY_DIR}/ampscopeConfigVersion.cmake
        DESTINATION ${ampscope_install_lib}/cmake)

# pip: the package must also be where Python looks for packages. Under `ampscope run` it comes from lib/ampscope.
if(SKBUILD)
  install(DIRECTORY ${ampscope_python}/ampscope DESTINATION ${SKBUILD_PLATLIB_DIR} PATTERN __pycache__ EXCLUDE)
endif()
