// docs/trace-format.md names every kind and every field in its table, and the bytes that it shows are the trace that it
// says.

#include <span>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/trace/files.h"
#include "tests/trace/records.h"
#include "trace/encode.h"

namespace ampscope::trace::test {
namespace {

std::string page() {
  return read_file(AMPSCOPE_SOURCE_DIR "/docs/trace-format.md");
}

/// The row of a table that begins with `first`.
std::string row(const std::string& text, const std::string& first) {
  const std::size_t begin = text.find("\n| " + first + " |");
  if (begin == std::string::npos) return {};
  return text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
}

template <class T>
void expect_fields(const std::string& first) {
  const std::string text = row(page(), first);
  ASSERT_NE(text, "") << "no row for " << first;
  const auto check = [&](std::string_view name, auto /*member*/, Range /*range*/ = Range::any) {
    EXPECT_NE(text.find("`" + std::string(name) + "`"), std::string::npos) << first << " lacks " << name;
  };
  Fields<T>::visit(check);
}

template <class... T>
void expect_kinds() {
  (expect_fields<T>("`" + std::string(Fields<T>::kind) + "`"), ...);
}

TEST(FormatPage, NamesEveryKindAndField) {
  expect_kinds<RunInfo, Site, Parameter, Optimizer, Scaler, Schedule, StepPattern, NonfiniteEvent, FlightRecord,
               HiddenRegion, RoundTrip, RecorderStatus, RunEnd, ExitStatus, SiteTotals, StepRun, schema::ScalerRun,
               GradientWindow, NonfiniteGradient, SiteNumerics, RoundingErrors, WriteSample, SeriesPoint>();
  expect_fields<SourceLine>("line");
  expect_fields<TensorType>("tensor type");
  expect_fields<TensorStats>("statistics");
  expect_fields<WitnessTensor>("witness");
  expect_fields<Replay>("replay");
  expect_fields<ProtocolEvent>("event (columns)");
  expect_fields<RecentCall>("call (columns)");
}

TEST(FormatPage, ItsBytesAreATraceOfThoseRecords) {
  std::istringstream lines(page());
  std::string bytes;
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 14 || !line.starts_with("    000000") || line[12] != ':') continue;
    std::istringstream pairs(line.substr(14, 16 * 3));
    for (std::string pair; pairs >> pair;)
      bytes.push_back(static_cast<char>(std::stoi(pair, nullptr, 16)));
  }
  const Trace trace = must_read(bytes);
  EXPECT_FALSE(trace.damage.any());
  const std::vector<StepRun> runs = {{0, 2000, 0}, {2000, 1, 1}, {2001, 300, 0}};
  EXPECT_TRUE(equal(trace.step_runs, runs));
  EXPECT_EQ(trace.exit.value().status, 1);
  // Other versions of zstd may compress what this one did not, but the records are the same.
  std::string records;
  encode_columns(records, std::span<const StepRun>(runs));
  encode_record(records, ExitStatus{1});
  EXPECT_EQ(bytes.substr(0x1d, records.size()), records);
}

}  // namespace
}  // namespace ampscope::trace::test
