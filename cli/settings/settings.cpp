#include "cli/settings/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "cli/app/error.h"
#include "cli/app/suggest.h"
#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

constexpr std::array<SettingSpec, 16> specs = {{
    {"run.output", "-o", "AMPSCOPE_OUTPUT", "run.ampscope",
     "trace that a run writes; %p, %r and %h are pid, rank and host", true},
    {"run.level", "--level", "AMPSCOPE_LEVEL", "auto", "how much a run records: ops, grads, auto, full or shadow"},
    {"run.budget", "--budget", "AMPSCOPE_BUDGET", "", "most that recording may cost, in percent of the run's time"},
    {"run.max_size", "--max-size", "AMPSCOPE_MAX_SIZE", "512MiB", "largest trace of one process"},
    {"run.html", "--html", "AMPSCOPE_HTML", "", "HTML report to write after a run", true},
    {"run.repro", "--repro", "AMPSCOPE_REPRO", "", "folder for a program that shows the fault alone", true},
    {"run.check", "--check", "AMPSCOPE_CHECK", "false", "whether findings change the exit status of a run"},
    {"run.quiet", "--quiet", "AMPSCOPE_QUIET", "false", "whether a run leaves out its summary"},
    {"report.format", "--format", "AMPSCOPE_FORMAT", "terminal", "format of a report"},
    {"rules.select", "--select", "AMPSCOPE_SELECT", "", "rules to use: codes, beginnings of codes, or names"},
    {"rules.ignore", "--ignore", "AMPSCOPE_IGNORE", "", "rules not to use"},
    {"rules.min_severity", "--min-severity", "AMPSCOPE_MIN_SEVERITY", "info", "least severity that is reported"},
    {"check.fail_on", "--fail-on", "AMPSCOPE_FAIL_ON", "warning", "least severity that a check fails on"},
    {"check.baseline", "--baseline", "AMPSCOPE_BASELINE", "", "findings that a check knows already", true},
    {"install.lib_dir", "", "AMPSCOPE_LIB_DIR", "", "folder of the probe, where it does not lie beside the command",
     true},
    {"install.python", "", "AMPSCOPE_PYTHON", "", "Python that `ampscope doctor` looks at"},
}};

const SettingSpec* find_spec(std::string_view key) {
  const auto* const spec = std::find_if(specs.begin(), specs.end(), [&](const SettingSpec& s) { return s.key == key; });
  return spec == specs.end() ? nullptr : spec;
}

std::optional<std::filesystem::path> find_file(const std::filesystem::path& directory) {
  for (std::filesystem::path folder = directory;; folder = folder.parent_path()) {
    std::error_code error;
    std::filesystem::path file = folder / "ampscope.toml";
    if (std::filesystem::is_regular_file(file, error)) return file;
    if (folder == folder.parent_path()) return std::nullopt;
  }
}

/// The value as it would be typed; lists become words between commas.
std::optional<std::string> typed(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return text;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto integer = node.value_exact<std::int64_t>()) return fmt::format("{}", *integer);
  if (const auto real = node.value_exact<double>()) return fmt::format("{}", *real);
  if (const toml::array* const list = node.as_array()) {
    std::string out;
    for (const toml::node& entry : *list) {
      const auto word = entry.value_exact<std::string>();
      if (!word) return std::nullopt;
      out += (out.empty() ? "" : ",") + *word;
    }
    return out;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& file, const toml::node& node, const std::string& message) {
  throw UserError(fmt::format("{}:{}: {}", file, node.source().begin.line, message));
}

}  // namespace

std::span<const SettingSpec> setting_specs() {
  return specs;
}

Settings Settings::load(const std::string& directory) {
  Settings settings;
  const std::optional<std::filesystem::path> file = find_file(directory);
  if (!file) return settings;
  settings.file_ = file->string();

  toml::table document;
  try {
    document = toml::parse_file(settings.file_);
  } catch (const toml::parse_error& error) {
    throw UserError(
        fmt::format("{}:{}: {}", settings.file_, error.source().begin.line, reporters::printable(error.description())));
  }

  std::vector<std::string> known;
  known.reserve(specs.size());
  for (const SettingSpec& spec : specs)
    known.emplace_back(spec.key);
  for (const auto& [table_name, table_node] : document) {
    const toml::table* const table = table_node.as_table();
    if (table == nullptr) {
      refuse(settings.file_, table_node,
             fmt::format("'{}' stands in no table; write it under [run], [report], [rules] or [check]",
                         reporters::printable(table_name.str())));
    }
    for (const auto& [name, node] : *table) {
      const std::string key = fmt::format("{}.{}", table_name.str(), name.str());
      if (const toml::table* const parameters = node.as_table(); parameters != nullptr && table_name == "rules") {
        for (const auto& [parameter, value] : *parameters) {
          const auto number = value.value<double>();
          if (!number) refuse(settings.file_, value, fmt::format("{}.{} must be a number", key, parameter.str()));
          settings.rule_parameters_[std::string(name.str())][std::string(parameter.str())] = *number;
        }
        continue;
      }
      if (find_spec(key) == nullptr) {
        refuse(settings.file_, node,
               fmt::format("there is no setting '{}'{}", reporters::printable(key), did_you_mean(key, known)));
      }
      const std::optional<std::string> text = typed(node);
      if (!text)
        refuse(settings.file_, node, fmt::format("{} must be a text, a number, a truth value or a list of texts", key));
      settings.values_[key] = *text;
    }
  }
  return settings;
}

Setting Settings::get(std::string_view key, const std::optional<std::string>& flag) const {
  const SettingSpec* const spec = find_spec(key);
  if (spec == nullptr) throw std::logic_error(fmt::format("no setting {}", key));
  if (flag) return {*flag, spec->flag};
  // Inside a run the environment holds what that run told its program; it is not what the user set for this command.
  const bool inside_a_run = std::getenv("AMPSCOPE_RUN_ID") != nullptr && key.starts_with("run.");
  const char* const variable = inside_a_run ? nullptr : std::getenv(spec->environment);
  if (variable != nullptr && *variable != '\0') return {variable, spec->environment};
  if (const auto entry = values_.find(key); entry != values_.end()) {
    std::string text = entry->second;
    if (spec->is_path && !text.empty()) text = (std::filesystem::path(file_).parent_path() / text).string();
    return {std::move(text), file_ + ": " + spec->key};
  }
  return {spec->fallback, "default"};
}

}  // namespace ampscope::cli
