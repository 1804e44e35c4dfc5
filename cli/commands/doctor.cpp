#include "cli/commands/doctor.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/doctor/machine.h"
#include "cli/doctor/torch_search.h"
#include "cli/output/terminal.h"
#include "cli/process/installation.h"
#include "cli/settings/settings.h"
#include "reporters/common/text.h"
#include "reporters/html/html_report.h"
#include "reporters/terminal/layout.h"
#include "reporters/terminal/paint.h"

namespace ampscope::cli {
namespace {

using reporters::Tone;

/// The findings of the doctor as lines: what was looked at, how it is, and what to do where it is not well.
class Examination {
 public:
  Examination(int width, bool colour) : width_(width), paint_(colour) {}

  void good(const std::string& what, const std::string& value) { row("ok", Tone::fix, what, value); }
  /// A thing that is not there and need not be.
  void absent(const std::string& what, const std::string& value) { row("-", Tone::faint, what, value); }
  void bad(const std::string& what, const std::string& value) {
    works_ = false;
    row("no", Tone::error, what, value);
  }
  void heading(const std::string& text) { text_ += (text_.empty() ? "" : "\n") + paint_(Tone::strong, text) + "\n"; }
  void setting(const std::string& key, const std::string& value, const std::string& origin) {
    constexpr int key_width = 18;
    constexpr int value_width = 24;
    text_ += "  " + reporters::pad_right(key, key_width) + "  " +
             reporters::pad_right(reporters::printable(value), value_width) + "  " +
             paint_(Tone::faint, reporters::printable(origin)) + "\n";
  }

  [[nodiscard]] bool works() const { return works_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void row(const std::string& mark, Tone tone, const std::string& what, const std::string& value) {
    hanging("  " + paint_(tone, mark) + std::string(4 - mark.size(), ' ') + reporters::pad_right(what, 12), 18, value);
  }
  void hanging(std::string start, int indent, const std::string& value) {
    for (const std::string& part : reporters::wrap(reporters::printable(value), width_ - indent)) {
      text_ += start + part;
      text_.erase(text_.find_last_not_of(' ') + 1);
      text_ += '\n';
      start = std::string(static_cast<std::size_t>(indent), ' ');
    }
  }

  int width_;
  reporters::Painter paint_;
  std::string text_;
  bool works_ = true;
};

void examine_installation(Examination& examination, const Installation& installation) {
  examination.good("folder", installation.lib_dir);
  if (!installation.unnameable.empty()) examination.bad("folder", installation.unnameable);
  if (installation.bootstrap.empty()) {
    examination.bad("python",
                    "the Python part is not there, so Python programs cannot be watched; build with the probe "
                    "(-DAMPSCOPE_BUILD_PROBE=ON) or install with: pip install --no-build-isolation .");
  } else {
    examination.good("python", "the Python part is there");
  }
  if (installation.preload_stub.empty()) {
    examination.bad("c++",
                    "libampscope_preload.so is not there, so C++ programs cannot be watched; build with the probe "
                    "(-DAMPSCOPE_BUILD_PROBE=ON)");
  } else {
    examination.good("c++", "libampscope_preload.so is there");
  }
  if (installation.adapters.empty()) {
    examination.bad("adapters",
                    "there is no adapter for any torch; build with the probe against the torch you train with");
  } else {
    examination.good("adapters", fmt::format("for torch {}", fmt::join(installation.adapters, ", ")));
  }
  if (reporters::has_html_page()) {
    examination.good("html", "this build writes HTML reports");
  } else {
    examination.absent("html", "this build writes no HTML reports; node 20.19 or newer is needed to build their page");
  }
}

void examine_torch(Examination& examination, const TorchSearch& search, const Installation& installation) {
  if (search.python.empty()) {
    examination.bad("python", search.error.empty()
                                  ? "there is no python3 in PATH; activate the environment you train in"
                                  : search.error);
    return;
  }
  if (!search.error.empty()) {
    examination.bad("python", fmt::format("{}: {}", search.python, search.error));
    return;
  }
  examination.good("python", fmt::format("{} ({})", search.python, search.python_version));
  if (search.package.empty()) {
    examination.bad("torch",
                    "this Python has no torch; activate the environment you train in, or name its Python with "
                    "--python. A C++ program brings its own LibTorch and needs none here");
    return;
  }
  const TorchMinor minor = torch_minor(search.version);
  const std::string version = search.version.empty() ? "of unknown version" : search.version;
  if (!minor.supported()) {
    examination.bad("torch",
                    fmt::format("torch {} is not supported; ampscope watches torch 2.11 to 2.15. Install one of "
                                "these: pip install torch==2.13.0",
                                version));
    return;
  }
  examination.good("torch", fmt::format("{} in {}", version, search.package));
  const std::string needed = fmt::format("{}.{}", minor.major, minor.minor);
  // pip puts adapters into the environment of the torch they were built for.
  const Installation environment = find_installation(search.prefix + "/lib/ampscope");
  for (const Installation* const place : {&installation, &environment}) {
    if (std::find(place->adapters.begin(), place->adapters.end(), needed) != place->adapters.end()) {
      examination.good("adapter", fmt::format("for torch {} in {}", needed, place->lib_dir));
      return;
    }
  }
  examination.bad("adapter", fmt::format("there is none for torch {}; build ampscope against it: activate this "
                                         "environment and use pip install --no-build-isolation . in the source folder",
                                         needed));
}

void examine_machine(Examination& examination, const TorchSearch& search) {
  const Processor processor = find_processor();
  examination.good("processor", processor.model.empty() ? "unknown" : processor.model);
  const auto has = [&](const char* feature) {
    return std::find(processor.features.begin(), processor.features.end(), feature) != processor.features.end();
  };
  // As the statistics kernels choose (probe/stats/cpu).
  const bool avx2 = has("avx2") && has("fma") && has("bmi2");
  const bool avx512 = avx2 && has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  const char* const kernels = avx512 ? "AVX-512" : avx2 ? "AVX2" : "the plain ones";
  examination.good(
      "kernels",
      fmt::format("{} (of interest here: {})", kernels,
                  processor.features.empty() ? "nothing" : fmt::format("{}", fmt::join(processor.features, ", "))));
  const Cuda cuda = find_cuda(search.package);
  if (cuda.driver.empty()) {
    examination.absent("cuda", "no NVIDIA driver; training on the CPU is watched all the same");
    return;
  }
  examination.good("cuda",
                   fmt::format("driver for CUDA {}, {}", cuda.driver,
                               cuda.devices.empty() ? "no device" : fmt::format("{}", fmt::join(cuda.devices, ", "))));
  if (cuda.cupti.empty()) {
    examination.absent("cupti", "not found, so times of GPU kernels are not recorded");
  } else {
    examination.good("cupti", cuda.cupti);
  }
  if (cuda.nvcc.empty()) {
    examination.absent("nvcc", "not found; only needed to build the CUDA kernels");
  } else {
    examination.good("nvcc", cuda.nvcc);
  }
}

void show_settings(Examination& examination, const Settings& settings) {
  for (const SettingSpec& spec : setting_specs()) {
    const Setting setting = settings.get(spec.key);
    const std::string value = setting.text.empty() ? "(none)" : setting.text;
    examination.setting(spec.key, value, setting.origin);
  }
  if (settings.file().empty()) examination.setting("ampscope.toml", "(none)", "in this folder and those above it");
}

}  // namespace

Action declare_doctor(CLI::App& app, Context& /*context*/) {
  auto python = std::make_shared<Flag>();
  app.add_option("--python", *python, "Python to look at (default: python3 in PATH)")->type_name("FILE");
  app.footer("Exit status: 0 when a run would work here, 1 when it would not, 2 when that cannot be told.");
  return [python] {
    const Settings settings = Settings::load(std::filesystem::current_path().string());
    const Installation installation = find_installation(settings.get("install.lib_dir").text);
    const TorchSearch search = find_torch(settings.get("install.python", *python).text);

    Examination examination(terminal_width(Stream::out), use_colour(Stream::out));
    examination.heading(fmt::format("ampscope {}", AMPSCOPE_VERSION));
    examine_installation(examination, installation);
    examination.heading("what programs would train with");
    examine_torch(examination, search, installation);
    examination.heading("this machine");
    examine_machine(examination, search);
    examination.heading("settings, and where they come from");
    show_settings(examination, settings);
    const char* const verdict = examination.works()
                                    ? "\nampscope run works here.\n"
                                    : "\nampscope run does not work here yet; see the lines with \"no\".\n";
    print(Stream::out, examination.text() + verdict);
    return examination.works() ? 0 : 1;
  };
}

}  // namespace ampscope::cli
