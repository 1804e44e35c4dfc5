// Writes a trace like that of a long run of a large model, to measure how fast traces are read, analysed and shown.
//
//   make_trace FILE [--parameters N] [--steps N] [--sites N] [--events N] [--every-step]
//
// What stands in it is what the recorder would write: gradients of every parameter in windows that grow with the run
// (probe/record/windows.h), full numerics of every site in sampled steps, scaler updates and series of every step,
// totals of every site. --every-step writes a row for each parameter and step instead of windows: more than the
// recorder ever does, parameters x steps rows. The same options give the same file.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probe/record/windows.h"
#include "trace/writer.h"

namespace {

using namespace ampscope;

struct Options {
  std::string file;
  std::int64_t parameters = 1000;
  std::int64_t steps = 10'000;
  std::int64_t sites = 4000;
  std::int64_t events = 10'000'000;
  bool every_step = false;
};

constexpr std::int64_t parameters_a_layer = 10;
constexpr std::size_t rows_a_frame = 20'000;

class Maker {
 public:
  explicit Maker(const Options& options) : options_(options) {}

  bool run() {
    if (!writer_.open(options_.file, trace::Writer::Existing::overwrite)) return false;
    define();
    scaler_and_series();
    gradients();
    numerics();
    totals();
    return writer_.close();
  }
  [[nodiscard]] const std::string& error() const { return writer_.error(); }

 private:
  static std::string layer_of(std::int64_t i) { return "blocks." + std::to_string(i / parameters_a_layer) + ".mlp"; }

  void define() {
    trace::RunInfo run;
    run.run_id = options_.file;  // Traces of one run are read together.
    run.tool_version = "0";
    run.command = {"python", "train.py"};
    run.language = "python";
    run.torch_version = "2.13.0";
    run.devices = {"cpu"};
    run.level = trace::Level::automatic;
    writer_.add(run);
    trace::Optimizer optimizer;
    optimizer.id = 0;
    optimizer.name = "AdamW";
    optimizer.settings = {{"lr", 1e-3}, {"eps", 1e-8}};
    writer_.add(optimizer);
    trace::Scaler scaler;
    scaler.id = 0;
    scaler.implementation = "torch.amp.GradScaler";
    writer_.add(scaler);
    for (std::int64_t i = 0; i < options_.parameters; ++i) {
      trace::Parameter parameter;
      parameter.id = i;
      parameter.name = layer_of(i) + ".weight" + std::to_string(i % parameters_a_layer);
      parameter.module = layer_of(i);
      parameter.module_class = "Mlp";
      parameter.dtype = trace::DType::float32;
      parameter.shape = {1024, 1024};
      parameter.count = 1024 * 1024;
      parameter.device = "cpu";
      parameter.optimizer = 0;
      parameter.first_step = 0;
      writer_.add(parameter);
    }
    for (std::int64_t i = 0; i < options_.sites; ++i) {
      trace::Site site;
      site.id = i;
      site.phase = i % 2 == 0 ? trace::Phase::forward : trace::Phase::backward;
      site.name = i % 3 == 0 ? "aten::linear" : i % 3 == 1 ? "aten::gelu" : "aten::layer_norm";
      site.module = layer_of(i % options_.parameters);
      site.module_class = "Mlp";
      site.has_module = true;
      site.source = {"train.py", static_cast<int>(10 + i % 500), "forward"};
      site.autocast = true;
      site.autocast_dtype = trace::DType::float16;
      site.compute_dtype = trace::DType::float16;
      site.grad_enabled = true;
      writer_.add(site);
    }
    trace::StepPattern pattern;
    pattern.id = 0;
    pattern.events = {
        {.kind = trace::EventKind::scale_loss, .object = 0},
        {.kind = trace::EventKind::backward,
         .flags = trace::event_flag::autocast | trace::event_flag::autocast_float16 | trace::event_flag::scaled,
         .optimizers = 1},
        {.kind = trace::EventKind::unscale, .object = 0},
        {.kind = trace::EventKind::optimizer_step, .object = 0, .flags = trace::event_flag::through_scaler},
        {.kind = trace::EventKind::scaler_update, .object = 0}};
    writer_.add(pattern);
    const trace::StepRun all{0, options_.steps, 0};
    writer_.add(std::span(&all, 1));
    writer_.flush();
  }

  void scaler_and_series() {
    std::vector<trace::ScalerUpdate> updates;
    record::SeriesWindows series;
    float scale = 65536;
    std::int32_t tracker = 0;
    for (std::int64_t step = 0; step < options_.steps; ++step) {
      trace::ScalerUpdate update;
      update.step = step;
      update.scaler = 0;
      update.scale_before = scale;
      update.tracker_before = tracker;
      update.growth_factor = 2;
      update.backoff_factor = 0.5;
      update.growth_interval = 2000;
      if (++tracker == update.growth_interval) {
        tracker = 0;
        scale = std::min(scale * 2, 16777216.0F);
      }
      update.scale_after = scale;
      update.tracker_after = tracker;
      updates.push_back(update);
      const double noise = 0.02 * normal_(random_);
      series.add("loss", trace::none, step, 8 / (1 + 0.002 * static_cast<double>(step)) + noise);
      series.add("grad_norm", trace::none, step, 1 + noise);
      series.add("lr", 0, step, 1e-3);
    }
    writer_.add(std::span<const trace::ScalerUpdate>(updates));
    const auto points = series.take(options_.steps, true);
    writer_.add(std::span<const trace::SeriesPoint>(points));
    writer_.flush();
  }

  /// Values spread over some binades around 2^center.
  trace::TensorStats stats_around(int center, std::int64_t count, std::int64_t merged) {
    trace::TensorStats stats;
    stats.count = static_cast<std::uint64_t>(count * merged);
    stats.zero = stats.count / 100;
    std::uint64_t left = stats.count - stats.zero;
    stats.exponents.first = center - 20;
    for (int i = 0; i < 24 && left > 0; ++i) {
      const std::uint64_t here = i == 23 ? left : std::min(left, 1 + left / 3 + random_() % (left / 8 + 1));
      stats.exponents.counts.insert(stats.exponents.counts.begin(), here);
      left -= here;
    }
    stats.absmax = std::ldexp(1.5, stats.exponents.last());
    stats.max = stats.absmax;
    stats.min = -stats.absmax;
    stats.sum_squares = static_cast<double>(stats.count) * std::ldexp(1.0, 2 * center);
    return stats;
  }

  void gradients() {
    std::vector<trace::GradientWindow> rows;
    const auto write = [&] {
      writer_.add(std::span<const trace::GradientWindow>(rows));
      writer_.flush();
      rows.clear();
    };
    for (std::int64_t first = 0; first < options_.steps;) {
      const std::int64_t length =
          std::min(options_.every_step ? 1 : record::window_length(first), options_.steps - first);
      for (std::int64_t i = 0; i < options_.parameters; ++i) {
        trace::GradientWindow row;
        row.parameter = i;
        row.first_step = first;
        row.last_step = first + length - 1;
        row.steps = length;
        row.scale_min = row.scale_max = 65536;
        row.backward_dtype = trace::DType::float16;
        row.stats = stats_around(-12 - static_cast<int>(i % 6), 1024 * 1024, length);
        rows.push_back(std::move(row));
        if (rows.size() == rows_a_frame) write();
      }
      first += length;
    }
    write();
  }

  void numerics() {
    std::vector<trace::SiteNumerics> rows;
    std::int64_t gap = 1;
    // As the probe plans its looks: the first steps, then ever rarer ones.
    for (std::int64_t step = 0; step < options_.steps; step += gap) {
      gap = step < 2 ? 1 : std::max<std::int64_t>(2, step < record::settled_steps ? step / 4 : step / 2);
      for (std::int64_t i = 0; i < options_.sites; ++i) {
        trace::SiteNumerics row;
        row.site = i;
        row.step = step;
        row.weight = static_cast<double>(gap);
        row.dtype = trace::DType::float16;
        row.stats = stats_around(-2, 64 * 1024, 1);
        rows.push_back(std::move(row));
      }
      writer_.add(std::span<const trace::SiteNumerics>(rows));
      writer_.flush();
      rows.clear();
    }
  }

  void totals() {
    std::vector<trace::SiteTotals> rows;
    for (std::int64_t i = 0; i < options_.sites; ++i) {
      trace::SiteTotals row;
      row.site = i;
      row.calls = std::max<std::int64_t>(1, options_.events / options_.sites);
      row.steps = std::min(row.calls, options_.steps);
      row.first_step = 0;
      row.last_step = options_.steps - 1;
      row.elements = row.calls * 64 * 1024;
      row.bytes = row.elements * 2;
      row.time_ns = row.calls * 20'000;
      row.checked_calls = row.calls;
      row.absmax = 12;
      rows.push_back(row);
    }
    writer_.add(std::span<const trace::SiteTotals>(rows));
    trace::RecorderStatus status;
    status.steps = options_.steps;
    status.events_seen = options_.events;
    status.elapsed_ns = options_.steps * 100'000'000;
    status.own_time_ns = status.elapsed_ns / 50;
    writer_.add(status);
    trace::RunEnd end;
    end.how = "exit";
    writer_.add(end);
  }

  Options options_;
  trace::Writer writer_;
  std::mt19937_64 random_{7};
  std::normal_distribution<double> normal_;
};

bool parse(int argc, char** argv, Options& options) {
  const std::map<std::string_view, std::int64_t*> numbers = {{"--parameters", &options.parameters},
                                                             {"--steps", &options.steps},
                                                             {"--sites", &options.sites},
                                                             {"--events", &options.events}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto number = numbers.find(word);
    if (word == "--every-step") {
      options.every_step = true;
    } else if (number != numbers.end() && i + 1 < argc) {
      *number->second = std::atoll(argv[++i]);
      if (*number->second < 1) return false;
    } else if (options.file.empty() && !word.starts_with("-")) {
      options.file = word;
    } else {
      return false;
    }
  }
  return !options.file.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: make_trace FILE [--parameters N] [--steps N] [--sites N] [--events N] [--every-step]\n");
    return 2;
  }
  Maker maker(options);
  if (!maker.run()) {
    std::fprintf(stderr, "make_trace: %s\n", maker.error().c_str());
    return 1;
  }
  return 0;
}
