// What `ampscope tune` has to say about a run: for each scaler its settings, the recommended ones, and what each does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/scaler/tuner.h"

namespace ampscope::analyzers {

/// Settings to ask about; those that are not given are today's.
struct SettingsQuestion {
  std::optional<double> init_scale = {};
  std::optional<double> growth_factor = {};
  std::optional<double> backoff_factor = {};
  std::optional<std::int64_t> growth_interval = {};
  [[nodiscard]] bool any() const noexcept { return init_scale || growth_factor || backoff_factor || growth_interval; }
};

struct AskedSettings {
  ScalerSettings settings;
  Prediction predicted;
};

struct TuningReport {
  std::int64_t scaler = 0;
  std::string implementation;
  std::string source;       ///< "train.py:46", where update is called
  std::string device_type;  ///< "cpu", "cuda"
  bool restored = false;    ///< from a checkpoint, whose scale and settings replace those of the constructor
  std::int64_t updates = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t kept_back_step = trace::none;  ///< first step of the part kept back; none when the run is too short
  std::string not_tuned_because;              ///< empty when `tuning` holds something
  Tuning tuning;
  std::optional<AskedSettings> asked;
  std::vector<std::string> parameters;       ///< names by id
  std::vector<std::string> overflow_places;  ///< where gradients overflow first, most often first, few
  std::vector<std::string> disagreements;    ///< where the recorded scale does not follow from its settings
};

/// One entry for each scaler of the run; empty when it has none.
[[nodiscard]] std::vector<TuningReport> report_tuning(const TraceView& view, const SettingsQuestion& question = {});

/// Where gradients overflowed first, most often first.
[[nodiscard]] std::vector<std::string> overflow_places(const TraceView& view, std::int64_t scaler);

/// "cuda" where the run saw a GPU, else "cpu".
[[nodiscard]] std::string device_type(const trace::RunInfo& run);

/// The line to paste; settings that are torch's defaults are left out.
[[nodiscard]] std::string python_line(const ScalerSettings& settings, const std::string& device_type);
[[nodiscard]] std::string cpp_line(const ScalerSettings& settings);
/// The line with what is recommended: that above, or what to change in the checkpoint the scaler is restored from.
[[nodiscard]] std::string python_line(const Tuning& tuning, bool restored, const std::string& device_type);
[[nodiscard]] std::string cpp_line(const Tuning& tuning, bool restored);

}  // namespace ampscope::analyzers
