// Writes inputs for fuzz_reader to start from into the folder that it is given.

#include <cstdio>
#include <span>
#include <string>

#include "tests/trace/files.h"
#include "tests/trace/records.h"
#include "trace/encode.h"

namespace {

using namespace ampscope::trace;

std::string folder;

void write_seed(const std::string& name, const std::string& bytes) {
  test::write_file(folder + "/" + name, bytes);
}

template <class T>
void record_seed(test::Filler& filler) {
  std::string out = "1";
  encode_record(out, filler.make<T>());
  write_seed(std::string(schema::Fields<T>::kind), out);
}

template <class T>
void column_seed(test::Filler& filler) {
  std::string out = "2";
  for (int i = 0; i < 2; ++i) {
    const std::vector<T> rows = {filler.make<T>(), filler.make<T>()};
    encode_columns(out, std::span<const T>(rows));
  }
  write_seed(std::string(schema::Fields<T>::kind), out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  folder = argv[1];
  const test::SmallTrace small = test::small_trace();
  write_seed("file", "f" + small.bytes);
  write_seed("cut", "f" + small.bytes.substr(0, small.bytes.size() - 10) + small.bytes.substr(small.frame_ends[1]));
  write_seed("frames", "h" + small.bytes.substr(test::header_bytes().size()));
  test::Filler filler;
  record_seed<RunInfo>(filler);
  record_seed<Site>(filler);
  record_seed<Parameter>(filler);
  record_seed<Optimizer>(filler);
  record_seed<Scaler>(filler);
  record_seed<Schedule>(filler);
  record_seed<StepPattern>(filler);
  record_seed<NonfiniteEvent>(filler);
  record_seed<FlightRecord>(filler);
  record_seed<HiddenRegion>(filler);
  record_seed<RoundTrip>(filler);
  record_seed<RecorderStatus>(filler);
  record_seed<RunEnd>(filler);
  record_seed<ExitStatus>(filler);
  column_seed<SiteTotals>(filler);
  column_seed<StepRun>(filler);
  column_seed<schema::ScalerRun>(filler);
  column_seed<GradientWindow>(filler);
  column_seed<NonfiniteGradient>(filler);
  column_seed<SiteNumerics>(filler);
  column_seed<RoundingErrors>(filler);
  column_seed<WriteSample>(filler);
  column_seed<SeriesPoint>(filler);
  return 0;
}
