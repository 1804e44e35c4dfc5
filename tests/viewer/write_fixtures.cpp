// Writes the fixture reports as HTML files into the folder given: write_viewer_fixtures FOLDER
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "reporters/html/html_report.h"
#include "tests/viewer/fixture_reports.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_viewer_fixtures FOLDER\n", stderr);
    return 2;
  }
  using namespace ampscope;
  const std::vector<std::pair<std::string, analyzers::Report>> reports = {
      {"healthy", viewer_tests::healthy()},   {"clipped", viewer_tests::clipped()},
      {"overflow", viewer_tests::overflow()}, {"underflow", viewer_tests::underflow()},
      {"bf16", viewer_tests::bf16()},         {"huge", viewer_tests::huge(1000, 10000)},
      {"hostile", viewer_tests::hostile()},   {"empty", viewer_tests::empty()},
  };
  for (const auto& [name, report] : reports) {
    const auto page = reporters::render_html(report);
    if (const auto* const error = std::get_if<reporters::HtmlError>(&page)) {
      std::fprintf(stderr, "%s\n", error->message.c_str());
      return 1;
    }
    const std::string path = std::string(argv[1]) + "/" + name + ".html";
    std::ofstream file(path, std::ios::binary);
    file << std::get<std::string>(page);
    if (!file.flush()) {
      std::fprintf(stderr, "%s could not be written\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
