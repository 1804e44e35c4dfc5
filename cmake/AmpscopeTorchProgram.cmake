# Programs and libraries that include LibTorch's headers widely.

# A compiler needs 20 seconds and more for torch/torch.h, so it is read once for all of them. Targets that share a
# precompiled header must be compiled with the same options, position independence included.
function(ampscope_torch_headers target)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM ampscope_torch_headers)
endfunction()

if(NOT TARGET ampscope_torch_headers)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/torch_headers.cpp CONTENT "")
  add_library(ampscope_torch_headers OBJECT ${CMAKE_BINARY_DIR}/torch_headers.cpp)
  target_link_libraries(ampscope_torch_headers PRIVATE ampscope_options ampscope::torch)
  target_compile_options(ampscope_torch_headers PRIVATE -fPIC)
  target_precompile_headers(ampscope_torch_headers PRIVATE <torch/torch.h> <ATen/autocast_mode.h>)
endif()

# ampscope_torch_program(<target>): an executable that uses LibTorch, run from the build tree.
function(ampscope_torch_program target)
  ampscope_torch_headers(${target})
  set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH ${AMPSCOPE_TORCH_ROOT}/lib)
  # libtorch.so defines nothing itself; it pulls in the CUDA half of a CUDA build, and linkers drop what nobody refers to.
  target_link_options(${target} PRIVATE LINKER:--no-as-needed)
endfunction()
