#include "cli/repro/bundle.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/app/error.h"
#include "cli/output/file.h"
#include "reporters/common/place.h"
#include "reporters/repro/script.h"

namespace ampscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view inputs_name = "inputs.pt";
constexpr std::string_view script_name = "repro.py";

std::string file_of(const analyzers::CallKey& call) {
  return fmt::format("call{}.{}.pt", call.order, call.pid);
}

/// Files that a bundle is made of, or that a run that was killed left.
std::vector<fs::path> bundle_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool call = name.starts_with("call") && name.ends_with(".pt");
    if (call || name == inputs_name || name == script_name) files.push_back(entry->path());
  }
  return files;
}

}  // namespace

std::string prepare_repro_folder(const std::string& folder, bool force) {
  std::error_code error;
  const fs::path path = fs::absolute(folder).lexically_normal();
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path)) {
    throw UserError(fmt::format("cannot make the folder {} for --repro{}", folder,
                                error ? " (" + error.message() + ")" : ": there is a file of that name"));
  }
  for (const fs::path& file : bundle_files(path)) {
    if (!force) {
      throw UserError(
          fmt::format("{} holds an earlier reproduction; name another folder, or replace it with --force", folder));
    }
    fs::remove(file, error);
  }
  check_writable((path / script_name).string(), true);
  return path.string();
}

std::string finish_repro_folder(const std::string& folder, const analyzers::Report& report) {
  const auto about_a_call = [](const analyzers::Finding& finding) { return finding.call.has_value(); };
  const auto kept = [&](const analyzers::Finding& finding) {
    return finding.call && fs::exists(fs::path(folder) / file_of(*finding.call));
  };
  const auto finding = std::find_if(report.findings.begin(), report.findings.end(), kept);
  std::error_code error;
  if (finding != report.findings.end()) {
    fs::rename(fs::path(folder) / file_of(*finding->call), fs::path(folder) / inputs_name, error);
  }
  for (const fs::path& file : bundle_files(folder)) {
    if (file.filename() != inputs_name) fs::remove(file, error);
  }
  if (finding == report.findings.end()) {
    return std::any_of(report.findings.begin(), report.findings.end(), about_a_call)
               ? "no reproduction: the arguments of the call could not be kept (it draws random numbers, takes "
                 "lists of tensors, writes to several or large ones, is too large, or only passed the value on)"
               : "no reproduction: no finding is about a call that made a non-finite value";
  }
  const fs::path script = fs::path(folder) / script_name;
  write_file(script.string(), reporters::repro_script(*finding, report.run.working_directory, std::string(inputs_name)),
             true);
  return fmt::format("{} alone: python {}", finding->rule,
                     reporters::relative_path(script.string(), report.run.working_directory));
}

}  // namespace ampscope::cli
