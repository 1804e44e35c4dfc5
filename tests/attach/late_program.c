/* A program that knows nothing of libtorch until it has run for a while. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  if (count < 2) return 0;
  // Started by a test with a path of its own making.
  void* plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);  // NOLINT(clang-analyzer-optin.taint.GenericTaint)
  if (!plugin) {
    puts(dlerror());
    return 1;
  }
  int (*use_model)(void) = (int (*)(void))dlsym(plugin, "use_model");
  return use_model ? use_model() : 1;
}
