// What the values of options mean. `where` names the place a value came from, for messages: "--level",
// "AMPSCOPE_LEVEL", "ampscope.toml: run.level". Each throws UserError for a value that means nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/core/finding.h"
#include "trace/model.h"

namespace ampscope::cli {

[[nodiscard]] const std::vector<std::string>& level_names();
[[nodiscard]] const std::vector<std::string>& severity_names();
[[nodiscard]] const std::vector<std::string>& format_names();

/// One of `names`, as it is.
[[nodiscard]] std::string parse_choice(std::string_view text, const std::vector<std::string>& names,
                                       std::string_view what, std::string_view where);

[[nodiscard]] analyzers::Severity parse_severity(std::string_view text, std::string_view where);

/// "2%" or "2": percent, above 0 and at most 100.
[[nodiscard]] double parse_percent(std::string_view text, std::string_view where);

/// "512MiB", "2G", "1000000": bytes, at least 64 KiB. K, M, G are powers of 1024, as is KiB; KB, MB, GB are powers of
/// 1000.
[[nodiscard]] std::int64_t parse_size(std::string_view text, std::string_view where);

/// true/false, yes/no, on/off, 1/0.
[[nodiscard]] bool parse_switch(std::string_view text, std::string_view where);

/// Words between commas, without spaces around them and without empty ones.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

}  // namespace ampscope::cli
