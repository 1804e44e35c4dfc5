# Where things are installed. The command looks for the probe in ../lib/ampscope beside its own folder, whatever the
# distribution calls its library folder.

if(SKBUILD)
  # pip: what is put there comes into the root of the environment.
  set(ampscope_prefix ${SKBUILD_DATA_DIR}/)
  set(CMAKE_INSTALL_BINDIR ${ampscope_prefix}bin)
  set(CMAKE_INSTALL_DOCDIR ${ampscope_prefix}share/doc/ampscope)
endif()
include(GNUInstallDirs)
set(ampscope_install_lib ${ampscope_prefix}lib/ampscope)
set(ampscope_install_include ${ampscope_prefix}include)
