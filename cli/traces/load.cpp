#include "cli/traces/load.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cli/app/error.h"
#include "cli/output/terminal.h"
#include "reporters/common/text.h"
#include "trace/reader.h"

namespace ampscope::cli {
namespace {

namespace fs = std::filesystem;

/// Whose trace it is; without a run id where that cannot be read. Reads the beginning only: the first complete frame
/// says who wrote it.
trace::RunInfo peek_run(const std::string& path) {
  constexpr std::size_t enough = 64 << 10;
  std::string start(enough, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  const bool whole = file.eof();
  auto result = trace::read_trace_bytes(start, path);
  if (const auto* const read = std::get_if<trace::Trace>(&result); read != nullptr && !read->run.run_id.empty()) {
    return read->run;
  }
  if (whole) return {};
  result = trace::read_trace(path);
  const auto* const read = std::get_if<trace::Trace>(&result);
  return read == nullptr ? trace::RunInfo{} : read->run;
}

/// Of a run, the same for a copy of a trace and for no trace of another process.
using Process = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;

Process process_of(const trace::RunInfo& run) {
  return {run.hostname, run.pid, run.rank, run.start_time_ns};
}

std::vector<std::string> files_beside(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) files.push_back((folder / entry->path().filename()).string());
  }
  return files;
}

/// What the file's condition keeps from the report, in one sentence.
std::string describe_damage(const trace::Trace& read) {
  const trace::Damage& damage = read.damage;
  std::string what = "some of its records contradict each other";
  if (damage.truncated) {
    what = "it ends in the middle of a frame, as after a kill or on a full disk";
  } else if (!damage.reason.empty()) {
    what = damage.reason;
  }
  return fmt::format("{}: {}; the report rests on what could be read (ampscope info says more)", read.path, what);
}

}  // namespace

LoadedTraces load_traces(const std::vector<std::string>& paths) {
  LoadedTraces loaded;
  for (const std::string& path : paths) {
    ProgressLine progress("reading " + path);
    auto result =
        trace::read_trace(path, [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
    if (const auto* const error = std::get_if<trace::ReadError>(&result)) {
      throw UserError(reporters::printable(error->message));
    }
    auto& read = std::get<trace::Trace>(result);
    if (!loaded.traces.empty() && read.run.run_id != loaded.traces.front().run.run_id) {
      throw UserError(fmt::format("{} and {} are of different runs; give the traces of one run",
                                  reporters::printable(loaded.traces.front().path), reporters::printable(path)));
    }
    if (read.damage.any()) loaded.warnings.push_back(describe_damage(read));
    loaded.traces.push_back(std::move(read));
  }
  return loaded;
}

std::vector<std::string> traces_of_run(std::vector<std::string> candidates, const std::string& run_id) {
  std::erase_if(candidates, [&](const std::string& path) {
    return run_id.empty() || !trace::looks_like_trace(path) || peek_run(path).run_id != run_id;
  });
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

std::vector<std::string> with_siblings(const std::vector<std::string>& paths) {
  std::vector<std::string> all = paths;
  std::set<fs::path> known;
  std::set<Process> processes;
  std::vector<std::pair<std::string, std::string>> given;  // path and run id
  std::error_code error;
  for (const std::string& path : paths) {
    known.insert(fs::weakly_canonical(path, error));
    if (!trace::looks_like_trace(path)) continue;  // load_traces says what is wrong with it
    const trace::RunInfo run = peek_run(path);
    processes.insert(process_of(run));
    given.emplace_back(path, run.run_id);
  }
  for (const auto& [path, run_id] : given) {
    for (const std::string& sibling : traces_of_run(files_beside(path), run_id)) {
      // A copy of a trace is no further process.
      if (known.insert(fs::weakly_canonical(sibling, error)).second &&
          processes.insert(process_of(peek_run(sibling))).second)
        all.push_back(sibling);
    }
  }
  return all;
}

}  // namespace ampscope::cli
