#include "samples/cpp/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>
#include <vector>

#include "samples/cpp/faults.h"

namespace ampscope::samples {
namespace {

void list_faults() {
  for (const Fault& fault : all_faults()) {
    std::cout << std::left << std::setw(27) << fault.name << fault.rule << "  " << fault.description << '\n';
  }
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv, const std::string& description, bool convolution) {
  CommandLine options;
  bool list = false;
  std::vector<std::string> names;
  for (const Fault& fault : all_faults())
    names.push_back(fault.name);
  const std::map<std::string, executor::Precision> precisions{
      {"fp32", executor::Precision::fp32}, {"fp16", executor::Precision::fp16}, {"bf16", executor::Precision::bf16}};

  CLI::App app(description);
  app.add_option("--steps", options.steps, "optimizer steps (default: enough to learn the task)")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "of weights and data (default: 1)");
  app.add_option("--precision", options.precision, "fp32, fp16 or bf16 (default: fp16, for convolutions bf16)")
      ->transform(CLI::CheckedTransformer(precisions).description(""));
  app.add_option("--save", options.save, "write the final weights");
  app.add_flag("--print-losses", options.print_losses, "print every loss exactly, in hexadecimal");
  app.add_flag("--by-hand", options.by_hand, "the same training as a loop written by hand");
  app.add_option("--fault", options.fault, "train with a mistake in it")
      ->check(CLI::IsMember(names).description(""))
      ->type_name("NAME");
  app.add_flag("--list-faults", list, "print the names for --fault and end");
  if (convolution) {
    // fp16 convolutions are emulated on most processors, and their backward is hundreds of times slower.
    app.add_flag("--convolution", options.convolution, "a small convolutional network, in bf16");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  if (list) {
    list_faults();
    std::exit(0);
  }
  return options;
}

}  // namespace ampscope::samples
