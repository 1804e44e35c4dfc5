#include "trace/describe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace ampscope::trace {

namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 160> text{};
  const int size = std::snprintf(text.data(), text.size(), pattern, values...);
  return {text.data(), static_cast<std::size_t>(std::clamp(size, 0, static_cast<int>(text.size()) - 1))};
}

/// "1 site", "2 sites", "1,234 sites".
std::string amount(std::uint64_t count, const std::string& noun) {
  std::string digits = std::to_string(count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits + " " + noun + (count == 1 ? "" : "s");
}

std::string utc_time(std::int64_t nanoseconds) {
  const auto seconds = static_cast<std::time_t>(nanoseconds / 1'000'000'000);
  std::tm parts{};
  std::array<char, 40> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text.data(), size};
}

std::string duration(std::int64_t nanoseconds) {
  const double seconds = static_cast<double>(nanoseconds) * 1e-9;
  if (seconds < 1) return format("%.3g ms", seconds * 1e3);
  if (seconds < 120) return format("%.3g s", seconds);
  const auto whole = static_cast<long long>(seconds);
  if (whole < 7200) return format("%lld min %lld s", whole / 60, whole % 60);
  return format("%lld h %lld min", whole / 3600, whole / 60 % 60);
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const auto& part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

class Facts {
 public:
  explicit Facts(std::vector<Fact>& facts) : facts_(facts) {}
  void add(const char* label, std::string value) {
    if (!value.empty()) facts_.push_back({label, std::move(value)});
  }

 private:
  std::vector<Fact>& facts_;
};

std::string ending(const Trace& trace) {
  std::string text;
  if (trace.end) {
    text = trace.end->how;
    if (!trace.end->detail.empty()) text += ": " + trace.end->detail;
    if (const std::string at = trace.end->end_time_ns > 0 ? utc_time(trace.end->end_time_ns) : ""; !at.empty()) {
      text += " at " + at;
    }
  }
  if (trace.exit) {
    if (!text.empty()) text += "; ";
    text += "exit status " + std::to_string(trace.exit->status);
  }
  return text;
}

void describe_file(const Trace& trace, std::vector<Fact>& out) {
  Facts facts(out);
  facts.add("file", trace.path);
  facts.add("format", std::to_string(trace.major) + "." + std::to_string(trace.minor));
  facts.add("written by", trace.run.tool_version.empty() ? "" : "ampscope " + trace.run.tool_version);
  facts.add("size", byte_text(trace.damage.bytes_total) + " in " + amount(trace.damage.frames_read, "frame") + ", " +
                        byte_text(trace.content_bytes) + " before compression");
  facts.add("records", amount(trace.damage.records_read, "record"));
}

void describe_run(const Trace& trace, std::vector<Fact>& out) {
  const RunInfo& run = trace.run;
  Facts facts(out);
  facts.add("run", run.run_id);
  facts.add("command", joined(run.command, " "));
  facts.add("started in", run.working_directory);
  facts.add("started", run.start_time_ns > 0 ? utc_time(run.start_time_ns) : "");
  facts.add("process",
            run.pid > 0 ? std::to_string(run.pid) + (run.hostname.empty() ? "" : " on " + run.hostname) : "");
  if (run.rank >= 0) {
    facts.add("rank", std::to_string(run.rank) +
                          (run.world_size > 0 ? " of " + std::to_string(run.world_size) + " processes" : ""));
  }
  facts.add("torch", run.torch_version);
  facts.add("language", run.python_version.empty() ? run.language : run.language + " " + run.python_version);
  facts.add("processor", run.processor);
  facts.add("devices", joined(run.devices, ", "));
  facts.add("ended", ending(trace));
}

/// The calls that led to an anomaly, the last ones by name.
std::string recent_calls(const Trace& trace, const FlightRecord& record) {
  constexpr std::size_t named = 6;
  std::string text = amount(record.calls.size(), "call") + " up to step " + std::to_string(record.step);
  const std::size_t first = record.calls.size() - std::min(record.calls.size(), named);
  for (std::size_t i = first; i < record.calls.size(); ++i) {
    const RecentCall& call = record.calls[i];
    text += i == first ? ", the last: " : ", ";
    const auto site = static_cast<std::size_t>(call.site);
    text += call.site >= 0 && site < trace.sites.size() ? trace.sites[site].name : "unknown";
    if (call.nonfinite) {
      text += " (not finite)";
    } else if (!std::isnan(call.absmax)) {
      text += format(" (up to %.3g)", static_cast<double>(call.absmax));
    }
  }
  return text;
}

void describe_contents(const Trace& trace, std::vector<Fact>& out) {
  Facts facts(out);
  facts.add("steps", amount(static_cast<std::uint64_t>(std::max<std::int64_t>(trace.steps(), 0)), "step") + " in " +
                         amount(trace.patterns.size(), "pattern"));
  facts.add("operators", amount(trace.sites.size(), "site"));
  facts.add("parameters", amount(trace.parameters.size(), "parameter"));
  std::vector<std::string> names;
  names.reserve(trace.optimizers.size() + trace.scalers.size());
  for (const auto& optimizer : trace.optimizers)
    names.push_back(optimizer.name);
  facts.add("optimizers", joined(names, ", "));
  names.clear();
  for (const auto& scaler : trace.scalers)
    names.push_back(scaler.implementation);
  facts.add("scalers",
            trace.scalers.empty() ? "" : joined(names, ", ") + ", " + amount(trace.scaler_updates.size(), "update"));
  facts.add("gradients", amount(trace.gradients.size(), "window"));
  facts.add("values", amount(trace.numerics.size(), "sampled output"));
  if (!trace.rounding_errors.empty()) facts.add("comparisons", amount(trace.rounding_errors.size(), "compared output"));
  facts.add("anomalies", amount(trace.nonfinite_events.size(), "non-finite output") + ", " +
                             amount(trace.nonfinite_gradients.size(), "non-finite gradient"));
  for (const FlightRecord& record : trace.flight_records)
    facts.add("flight recorder", recent_calls(trace, record));
}

void describe_recorder(const Trace& trace, std::vector<Fact>& out) {
  const RecorderStatus& status = trace.status;
  Facts facts(out);
  std::string level = level_name(trace.run.level);
  if (trace.run.budget_percent > 0) level += format(", budget %.3g%%", trace.run.budget_percent);
  facts.add("level", level);
  facts.add("callbacks", amount(static_cast<std::uint64_t>(status.events_seen), "event"));
  if (status.elapsed_ns > 0) {
    const double share = static_cast<double>(status.own_time_ns) / static_cast<double>(status.elapsed_ns);
    facts.add("own time", duration(status.own_time_ns) + " of " + duration(status.elapsed_ns) +
                              format(" (%.2g%%), estimated", share * 100));
  }
}

void describe_losses(const Trace& trace, std::vector<std::string>& lost) {
  const Damage& damage = trace.damage;
  if (damage.regions_damaged != 0) {
    lost.push_back(byte_text(damage.bytes_damaged) + " of the file, in " + amount(damage.regions_damaged, "place") +
                   ", could not be read (" + damage.reason + ")");
  } else if (damage.any() && damage.records_damaged == 0) {
    lost.push_back("the file was not read to its end: " + damage.reason);
  }
  if (damage.truncated) {
    lost.emplace_back(
        "the file ends inside a frame: the process was killed while it wrote, the disk was full, or the trace is still "
        "being written");
  }
  if (damage.records_damaged != 0) {
    std::string sentence =
        amount(damage.records_damaged, "contradiction") + " in the records; what was wrong was left out";
    if (damage.regions_damaged == 0) sentence += " (" + damage.reason + ")";
    lost.push_back(sentence);
  }
  if (damage.records_skipped != 0) {
    lost.push_back(amount(damage.records_skipped, "record") +
                   " of a kind that this release does not know; a newer ampscope reads them");
  }
  const RecorderStatus& status = trace.status;
  if (status.events_dropped != 0) {
    lost.push_back(amount(static_cast<std::uint64_t>(status.events_dropped), "event") +
                   " came faster than the recorder could take them and were dropped");
  }
  if (status.sites_dropped != 0) {
    lost.push_back(amount(static_cast<std::uint64_t>(status.sites_dropped), "operator site") +
                   " did not fit in the recorder's table");
  }
  if (!status.switched_off_because.empty()) {
    std::string sentence = "the recorder switched itself off";
    if (status.switched_off_at_step >= 0) sentence += " at step " + std::to_string(status.switched_off_at_step);
    lost.push_back(sentence + ": " + status.switched_off_because);
  }
  if (!trace.end) {
    lost.emplace_back("the process did not say how it ended: it was killed, or it is still running");
  }
}

}  // namespace

std::string byte_text(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array<const char*, 4> units = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return format(value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

const char* level_name(Level level) noexcept {
  switch (level) {
    case Level::ops:
      return "ops";
    case Level::grads:
      return "grads";
    case Level::automatic:
      return "auto";
    case Level::full:
      return "full";
    case Level::shadow:
      return "shadow";
  }
  return "auto";
}

Description describe(const Trace& trace) {
  Description description;
  describe_file(trace, description.file);
  describe_run(trace, description.run);
  describe_contents(trace, description.contents);
  describe_recorder(trace, description.recorder);
  description.sizes = trace.sizes;
  std::stable_sort(description.sizes.begin(), description.sizes.end(),
                   [](const KindSize& a, const KindSize& b) { return a.bytes > b.bytes; });
  describe_losses(trace, description.lost);
  return description;
}

}  // namespace ampscope::trace
