// Stands for a training program with the probe in it: writes the traces that `ampscope run` asks for by its
// environment, with few and known contents, so that the command is tested without torch.
//
//   fake_trainer [steps=N] [dropped=N] [ranks=N] [exit=N] [signal=N] [notice=TEXT] [trace=no] [cut=BYTES]
//                [scale=POWER]
//
// scale: a gradient scaler that starts with this power of two, while gradients overflow from 2^12 on.
// dropped: events the recorder says it lost (AMP902 is a warning then). cut: bytes taken off the end of each trace.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "trace/series.h"
#include "trace/writer.h"

namespace {

namespace trace = ampscope::trace;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// %p and %% are all that the tests use.
std::string expand(const std::string& pattern) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p') path += std::to_string(getpid());
    if (next == '%') path += '%';
    if (next == 'p' || next == '%') {
      ++i;
    } else {
      path += pattern[i];
    }
  }
  return path;
}

std::string path_of_rank(const std::string& path, int rank) {
  if (rank == 0) return path;
  const std::size_t dot = path.rfind('.');
  return path.substr(0, dot) + ".rank" + std::to_string(rank) + path.substr(dot);
}

void write_scaler(trace::Writer& writer, int steps, int power) {
  trace::Scaler scaler;
  scaler.id = 0;
  scaler.implementation = "torch.amp.GradScaler";
  writer.add(scaler);
  std::vector<trace::ScalerUpdate> updates;
  std::vector<trace::SeriesPoint> series;
  float scale = std::ldexp(1.0F, power);
  int tracker = 0;
  for (int step = 0; step < steps; ++step) {
    const bool skip = scale >= 4096;
    trace::ScalerUpdate update;
    update.step = step;
    update.scaler = 0;
    update.scale_before = scale;
    update.tracker_before = tracker;
    update.found_inf = skip ? 1.0F : 0.0F;
    update.growth_factor = 2;
    update.backoff_factor = 0.5;
    update.growth_interval = 2000;
    scale = skip ? scale / 2 : scale;
    tracker = skip ? 0 : tracker + 1;
    update.scale_after = scale;
    update.tracker_after = tracker;
    updates.push_back(update);
    if (skip) continue;
    trace::SeriesPoint point;
    point.name = trace::backward_absmax_series;
    point.object = 0;
    point.first_step = point.last_step = step;
    point.count = 1;
    point.mean = point.min = point.max = 65520.0 / 4096;
    series.push_back(point);
  }
  writer.add(std::span<const trace::ScalerUpdate>(updates));
  writer.add(std::span<const trace::SeriesPoint>(series));
}

bool write_trace(const std::string& path, int rank, int ranks, int steps, int dropped, int power) {
  trace::Writer writer;
  if (!writer.open(path, trace::Writer::Existing::refuse)) {
    std::fprintf(stderr, "fake_trainer: %s\n", writer.error().c_str());
    return false;
  }
  trace::RunInfo run;
  run.run_id = variable("AMPSCOPE_RUN_ID");
  run.tool_version = "0.1.0";
  const auto command = nlohmann::json::parse(variable("AMPSCOPE_COMMAND"), nullptr, false);
  if (command.is_array()) run.command = command.get<std::vector<std::string>>();
  run.working_directory = variable("AMPSCOPE_CWD");
  run.language = "c++";
  run.torch_version = "2.13.0";
  run.devices = {"cpu"};
  run.pid = getpid();
  run.start_time_ns = 1'767'323'045'000'000'000;
  if (ranks > 1) {
    run.rank = rank;
    run.world_size = ranks;
  }
  writer.add(run);
  trace::Parameter parameter;
  parameter.id = 0;
  parameter.name = "fc.weight";
  parameter.dtype = trace::DType::float32;
  parameter.shape = {4, 2};
  parameter.count = 8;
  writer.add(parameter);
  trace::Optimizer optimizer;
  optimizer.id = 0;
  optimizer.name = "SGD";
  writer.add(optimizer);
  if (steps > 0) {
    trace::StepPattern pattern;
    pattern.id = 0;
    pattern.events = {{trace::EventKind::backward, trace::none, trace::none, 0, 1},
                      {trace::EventKind::optimizer_step, 0, trace::none, 0, 0}};
    writer.add(pattern);
    const std::vector<trace::StepRun> runs = {{0, steps, 0}};
    writer.add(std::span<const trace::StepRun>(runs));
  }
  if (power > 0) write_scaler(writer, steps, power);
  if (!writer.flush()) return false;
  trace::RecorderStatus status;
  status.steps = steps;
  status.events_seen = 1000;
  status.events_dropped = dropped;
  writer.add(status);
  trace::RunEnd end;
  end.how = "exit";
  writer.add(end);
  return writer.close();
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options = {{"steps", "3"},  {"dropped", "0"}, {"ranks", "1"}, {"exit", "0"},
                                                {"signal", "0"}, {"trace", "yes"}, {"cut", "0"},   {"scale", "0"}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  if (options.contains("notice")) {
    std::ofstream(variable("AMPSCOPE_STATUS_FILE"), std::ios::app)
        << nlohmann::json{{"level", "error"}, {"message", options["notice"]}} << "\n";
  }
  if (options["trace"] == "yes") {
    const int ranks = std::stoi(options["ranks"]);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string path = path_of_rank(expand(variable("AMPSCOPE_OUTPUT")), rank);
      if (!write_trace(path, rank, ranks, std::stoi(options["steps"]), std::stoi(options["dropped"]),
                       std::stoi(options["scale"])))
        return 99;
      const auto cut = static_cast<std::uintmax_t>(std::stoul(options["cut"]));
      if (cut > 0) std::filesystem::resize_file(path, std::filesystem::file_size(path) - cut);
    }
  }
  if (const int signal = std::stoi(options["signal"]); signal != 0) raise(signal);
  return std::stoi(options["exit"]);
}
