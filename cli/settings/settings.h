// Where the value of an option comes from: the flag, else the environment, else ampscope.toml, else the default.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ampscope::cli {

struct SettingSpec {
  const char* key;          ///< "run.level": table and key in ampscope.toml
  const char* flag;         ///< "--level"
  const char* environment;  ///< "AMPSCOPE_LEVEL"
  const char* fallback;     ///< the default, as it would be typed
  const char* help;
  bool is_path = false;  ///< in ampscope.toml relative to the folder of that file
};

/// Every setting, in the order `ampscope doctor` shows them.
[[nodiscard]] std::span<const SettingSpec> setting_specs();

struct Setting {
  std::string text;
  std::string origin;  ///< "--level", "AMPSCOPE_LEVEL", "ampscope.toml of a folder: run.level", "default"
  [[nodiscard]] bool is_default() const { return origin == "default"; }
};

class Settings {
 public:
  /// Reads ampscope.toml of `directory` or of the nearest parent that has one. Throws UserError when it cannot be read
  /// or holds a key that does not exist.
  static Settings load(const std::string& directory);

  /// The value of `key`; `flag` is what was typed, if something was.
  [[nodiscard]] Setting get(std::string_view key, const std::optional<std::string>& flag = std::nullopt) const;

  /// Parameters of rules from ampscope.toml: {"AMP302", {{"min_skips", 6}}}.
  [[nodiscard]] const std::map<std::string, std::map<std::string, double>>& rule_parameters() const {
    return rule_parameters_;
  }

  /// Path of the file that was read, "" for none.
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::map<std::string, std::string, std::less<>> values_;  ///< by key
  std::map<std::string, std::map<std::string, double>> rule_parameters_;
};

}  // namespace ampscope::cli
