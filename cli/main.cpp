#include <exception>

#include "cli/app/application.h"

int main(int argc, char** argv) {
  return ampscope::cli::run_command_line({argv + (argc > 0 ? 1 : 0), argv + argc});
}
