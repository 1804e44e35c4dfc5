#include "probe/record/recorder.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/reader.h"

namespace ampscope::record {
namespace {

namespace fs = std::filesystem;

trace::RunInfo run_named(const std::string& id) {
  trace::RunInfo run;
  run.run_id = id;
  return run;
}

GradientSample sample(std::int64_t step, std::int64_t parameter, double scale) {
  GradientSample s;
  s.step = step;
  s.parameter = parameter;
  s.scale = scale;
  return s;
}

trace::RunEnd ended() {
  trace::RunEnd end;
  end.how = "exit";
  return end;
}

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ampscope-recorder-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.output = (folder_ / "run.ampscope").string();
    options_.status_file = (folder_ / "status").string();
    options_.ring_bytes = 1 << 20;
    options_.max_bytes = default_max_bytes;
    options_.run_id = "r1";
  }
  void TearDown() override { fs::remove_all(folder_); }

  trace::Trace read(const std::string& path) {
    auto result = trace::read_trace(path);
    if (auto* error = std::get_if<trace::ReadError>(&result)) {
      ADD_FAILURE() << error->message;
      return {};
    }
    return std::get<trace::Trace>(std::move(result));
  }

  std::string status() {
    std::ifstream file(options_.status_file);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  Options options_;
};

TEST_F(RecorderTest, WritesWhatThreadsHandOver) {
  Recorder recorder(options_);
  ASSERT_TRUE(recorder.start(run_named("r1")));
  EXPECT_EQ(recorder.path(), options_.output);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&recorder, t] {
      FastLane* lane = recorder.acquire_lane();
      ASSERT_NE(lane, nullptr);
      auto stats = std::make_unique<stats::FlatStats>();
      stats->count = 4;
      stats->add(-3, 4);
      SiteCounters& counters = recorder.counters().create(t);
      trace::Site site;
      site.id = t;
      site.name = "aten::op";
      recorder.define(site);
      for (std::int64_t step = 0; step < 50; ++step) {
        recorder.numerics(*lane, step, t, 1, trace::DType::float16, *stats);
        recorder.gradient(*lane, sample(step, t, 1024), *stats);
        counters.count_call(step, 10, 20);
      }
      recorder.release_lane(lane);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  FastLane* lane = recorder.acquire_lane();
  trace::ProtocolEvent backward;
  recorder.define(trace::StepPattern{0, {backward}});
  for (std::int64_t step = 0; step < 50; ++step)
    recorder.step_finished(*lane, step, 0);
  recorder.finish(ended());

  const trace::Trace trace = read(options_.output);
  EXPECT_EQ(trace.steps(), 50);
  ASSERT_EQ(trace.sites.size(), 3U);
  ASSERT_EQ(trace.totals.size(), 3U);
  for (const trace::SiteTotals& totals : trace.totals) {
    EXPECT_EQ(totals.calls, 50);
    EXPECT_EQ(totals.steps, 50);
    EXPECT_EQ(totals.elements, 500);
    EXPECT_EQ(totals.bytes, 1000);
  }
  EXPECT_EQ(trace.numerics.size(), 150U);
  std::uint64_t elements = 0;
  for (const trace::GradientWindow& window : trace.gradients)
    elements += window.stats.exponents.total();
  EXPECT_EQ(elements, 3U * 50U * 4U);
  ASSERT_EQ(trace.step_runs.size(), 1U);
  EXPECT_EQ(trace.step_runs[0].count, 50);
  ASSERT_TRUE(trace.end);
  EXPECT_EQ(trace.end->how, "exit");
  EXPECT_FALSE(trace.damage.any());
  EXPECT_EQ(trace.status.events_dropped, 0);
}

TEST_F(RecorderTest, ASecondProcessOfTheRunLeavesTheFirstTraceAlone) {
  Recorder first(options_);
  ASSERT_TRUE(first.start(run_named("r1")));
  Recorder second(options_);
  ASSERT_TRUE(second.start(run_named("r1")));
  EXPECT_NE(first.path(), second.path());
  EXPECT_NE(second.path().find(std::to_string(getpid())), std::string::npos);
  first.finish(ended());
  second.finish(ended());
  EXPECT_EQ(read(first.path()).run.run_id, "r1");
  EXPECT_EQ(read(second.path()).run.run_id, "r1");
}

TEST_F(RecorderTest, AnUnwritablePlaceIsToldOnceAndRefused) {
  options_.output = (folder_ / "missing" / "run.ampscope").string();
  Recorder recorder(options_);
  EXPECT_FALSE(recorder.start({}));
  EXPECT_TRUE(recorder.failed());
  const std::string told = status();
  EXPECT_NE(told.find("missing"), std::string::npos);
  recorder.switch_off("something else", 3);
  EXPECT_EQ(status(), told);
}

TEST_F(RecorderTest, TheSizeLimitStopsTheTraceAndSaysSo) {
  options_.max_bytes = 20'000;
  Recorder recorder(options_);
  ASSERT_TRUE(recorder.start({}));
  FastLane* lane = recorder.acquire_lane();
  auto stats = std::make_unique<stats::FlatStats>();
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::uint64_t noise = 1;
  for (std::int64_t step = 0; !recorder.failed() && std::chrono::steady_clock::now() < give_up_at; ++step) {
    for (std::int64_t site = 0; site < 20; ++site) {
      stats->reset();
      for (int e = -20; e < 20; ++e)
        stats->add(e, (noise = noise * 6364136223846793005ULL + 1) >> 40);
      recorder.numerics(*lane, step, site, 1, trace::DType::float32, *stats);
    }
    recorder.step_finished(*lane, step, 0);
    recorder.urgent();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(recorder.failed());
  recorder.finish(ended());
  EXPECT_LT(fs::file_size(options_.output), 200'000U);
  EXPECT_NE(status().find("--max-size"), std::string::npos);
  EXPECT_FALSE(read(options_.output).damage.any());
}

/// Size of the trace of a run at level full, whose values are never twice the same.
std::uintmax_t size_of_run(Options options, const fs::path& folder, std::int64_t steps) {
  constexpr std::int64_t sites = 40;
  constexpr std::int64_t parameters = 10;
  options.output = (folder / ("run" + std::to_string(steps) + ".ampscope")).string();
  options.level = trace::Level::full;
  options.ring_bytes = 8 << 20;
  Recorder recorder(options);
  EXPECT_TRUE(recorder.start(run_named("r" + std::to_string(steps))));
  FastLane* const lane = recorder.acquire_lane();
  std::mt19937_64 random(1);
  auto stats = std::make_unique<stats::FlatStats>();
  recorder.define(trace::StepPattern{0, {trace::ProtocolEvent{}}});
  for (std::int64_t id = 0; id < sites; ++id) {
    recorder.counters().create(id);
    trace::Site site;
    site.id = id;
    recorder.define(site);
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    while (lane->crowded())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::int64_t id = 0; id < sites; ++id) {
      stats->reset();
      stats->count = 1000;
      for (int exponent = -20; exponent < 0; ++exponent)
        stats->add(exponent, 1 + random() % 100);
      recorder.numerics(*lane, step, id, 1, trace::DType::float16, *stats);
      if (id < parameters) recorder.gradient(*lane, sample(step, id, 1024), *stats);
      recorder.counters().create(id).count_call(step, 10, 20);
    }
    recorder.series(*lane, Series::loss, trace::none, step, static_cast<double>(random() % 1000));
    recorder.step_finished(*lane, step, 0);
  }
  recorder.finish(ended());
  const auto result = trace::read_trace(options.output);
  const auto* const trace = std::get_if<trace::Trace>(&result);
  EXPECT_TRUE(trace && trace->status.events_dropped == 0 && trace->steps() == steps);
  return fs::file_size(options.output);
}

TEST_F(RecorderTest, TenTimesTheStepsGiveHardlyMoreTrace) {
  const std::uintmax_t settled = size_of_run(options_, folder_, 2 * settled_steps);
  const std::uintmax_t longer = size_of_run(options_, folder_, 20 * settled_steps);
  EXPECT_LE(static_cast<double>(longer), 1.2 * static_cast<double>(settled)) << settled << " -> " << longer;
  RecordProperty("settled", std::to_string(settled));
  RecordProperty("longer", std::to_string(longer));
}

TEST_F(RecorderTest, TheTraceStaysBelowItsLimit) {
  options_.max_bytes = 300'000;
  const std::uintmax_t size = [&] {
    Options options = options_;
    Recorder recorder(options);
    EXPECT_TRUE(recorder.start(run_named("limited")));
    FastLane* const lane = recorder.acquire_lane();
    std::mt19937_64 random(1);
    auto stats = std::make_unique<stats::FlatStats>();
    const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (std::int64_t step = 0; !recorder.failed() && std::chrono::steady_clock::now() < give_up_at; ++step) {
      stats->reset();
      stats->count = random() >> 16;
      for (int exponent = -30; exponent < 0; ++exponent)
        stats->add(exponent, random() >> 24);
      recorder.numerics(*lane, step, 0, 1, trace::DType::float16, *stats);
      recorder.step_finished(*lane, step, 0);
      recorder.urgent();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    EXPECT_TRUE(recorder.failed());
    recorder.finish(ended());
    return fs::file_size(options.output);
  }();
  EXPECT_LE(size, 300'000U);
  const trace::Trace trace = read(options_.output);
  EXPECT_NE(trace.status.switched_off_because.find("--max-size"), std::string::npos);
  EXPECT_FALSE(trace.damage.any());
}

TEST_F(RecorderTest, AKilledProcessLeavesAReadableTrace) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto* recorder = new Recorder(options_);  // Never destroyed, as in a training process.
    if (!recorder->start(run_named("killed"))) _exit(1);
    FastLane* lane = recorder->acquire_lane();
    for (std::int64_t step = 0; step < 10; ++step)
      recorder->step_finished(*lane, step, 0);
    recorder->urgent();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    kill(getpid(), SIGKILL);
  }
  int how = 0;
  waitpid(child, &how, 0);
  ASSERT_TRUE(WIFSIGNALED(how));
  const trace::Trace trace = read(options_.output);
  EXPECT_EQ(trace.run.run_id, "killed");
  EXPECT_EQ(trace.steps(), 10);
  EXPECT_FALSE(trace.end);
}

}  // namespace
}  // namespace ampscope::record
