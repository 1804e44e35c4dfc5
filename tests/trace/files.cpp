#include "tests/trace/files.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <gtest/gtest.h>
#include <zstd.h>

namespace ampscope::trace::test {

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ampscope-trace-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string header_bytes(int major, int minor) {
  // Written out, so that a change of the format is seen here.
  std::string bytes("\x5A\x2A\x4D\x18\x0C\0\0\0ampscope", 16);
  for (const int number : {major, minor}) {
    bytes.push_back(static_cast<char>(number & 0xFF));
    bytes.push_back(static_cast<char>(number >> 8));
  }
  return bytes;
}

std::string frame_bytes(std::string_view content, bool checksum) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0);
  std::string frame(ZSTD_compressBound(content.size()), '\0');
  const std::size_t size = ZSTD_compress2(context, frame.data(), frame.size(), content.data(), content.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size) != 0) throw std::runtime_error(ZSTD_getErrorName(size));
  frame.resize(size);
  return frame;
}

Trace must_read(const std::string& bytes) {
  auto result = read_trace_bytes(bytes, "test.ampscope");
  if (const auto* error = std::get_if<ReadError>(&result)) {
    ADD_FAILURE() << error->message;
    return {};
  }
  return std::get<Trace>(std::move(result));
}

ReadError must_fail(const std::string& bytes) {
  auto result = read_trace_bytes(bytes, "test.ampscope");
  if (const auto* error = std::get_if<ReadError>(&result)) return *error;
  ADD_FAILURE() << "it was read";
  return {};
}

SmallTrace small_trace() {
  const Folder folder;
  const std::string path = folder.path("small.ampscope");
  SmallTrace trace;
  Writer writer;
  EXPECT_TRUE(writer.open(path, Writer::Existing::refuse)) << writer.error();
  const auto frame = [&] {
    EXPECT_TRUE(writer.flush()) << writer.error();
    trace.frame_ends.push_back(writer.bytes_written());
  };

  RunInfo run;
  run.run_id = "a1b2c3";
  run.command = {"python", "train.py"};
  run.torch_version = "2.13.0";
  writer.add(run);
  Optimizer optimizer;
  optimizer.id = 0;
  optimizer.name = "SGD";
  optimizer.settings = {{"lr", 0.1}};
  writer.add(optimizer);
  Scaler scaler;
  scaler.id = 0;
  scaler.implementation = "torch.amp.GradScaler";
  writer.add(scaler);
  frame();

  for (std::int64_t id = 0; id < 3; ++id) {
    Site site;
    site.id = id;
    site.name = id == 2 ? "AddmmBackward0" : "aten::linear";
    site.kind = id == 2 ? SiteKind::backward_node : SiteKind::op;
    site.phase = id == 2 ? Phase::backward : Phase::forward;
    site.source = {"/project/train.py", 40 + static_cast<int>(id), "forward"};
    site.inputs.push_back({DType::float32, {64, 32}, "cpu", none, none, true});
    writer.add(site);
    Parameter parameter;
    parameter.id = id;
    parameter.name = "layer" + std::to_string(id) + ".weight";
    parameter.dtype = DType::float32;
    parameter.optimizer = 0;
    writer.add(parameter);
  }
  StepPattern pattern;
  pattern.id = 0;
  pattern.events = {{EventKind::scale_loss, 0, 1, event_flag::autocast_float16, 0},
                    {EventKind::backward, none, 1, event_flag::scaled, 1},
                    {EventKind::optimizer_step, 0, none, 0, 0},
                    {EventKind::scaler_update, 0, none, 0, 0}};
  writer.add(pattern);
  frame();

  std::vector<ScalerUpdate> updates;
  std::vector<GradientWindow> gradients;
  for (std::int64_t step = 0; step < 10; ++step) {
    updates.push_back({step, 0, 65536, 65536, static_cast<std::int32_t>(step), static_cast<std::int32_t>(step) + 1, 0,
                       2, 0.5, 2000, false});
    GradientWindow window;
    window.parameter = step % 3;
    window.first_step = window.last_step = step;
    window.steps = 1;
    window.stats.count = 2048;
    window.stats.min = -1.5;
    window.stats.max = 0.75 * static_cast<double>(step + 1);
    window.stats.exponents.add(-14, 2000);
    window.stats.exponents.add(0, 48);
    gradients.push_back(window);
  }
  writer.add(std::span<const ScalerUpdate>(updates));
  writer.add(std::span<const GradientWindow>(gradients));
  frame();

  const std::vector<StepRun> runs = {{0, 10, 0}};
  writer.add(std::span<const StepRun>(runs));
  std::vector<SiteTotals> totals(3);
  for (std::size_t i = 0; i < totals.size(); ++i)
    totals[i] = {static_cast<std::int64_t>(i), 10, 10, 0, 9};
  writer.add(std::span<const SiteTotals>(totals));
  RecorderStatus status;
  status.steps = 10;
  writer.add(status);
  writer.add(RunEnd{"exit", "", 1'700'000'000'000'000'000});
  frame();
  EXPECT_TRUE(writer.close()) << writer.error();
  trace.bytes = read_file(path);
  return trace;
}

}  // namespace ampscope::trace::test
