#include "reporters/html/html_report.h"

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "reporters/html/page.h"

namespace ampscope::reporters {
namespace {

TEST(JsonForScript, KeepsTheValue) {
  const nlohmann::json value = {{"</script>", "<!-- <script> \xe2\x80\xa8 and \xe2\x80\xa9 \xe2\x80\xaa é"}, {"n", 3}};
  const std::string text = json_for_script(value.dump());
  EXPECT_EQ(nlohmann::json::parse(text), value);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xa8"), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xa9"), std::string::npos);
  EXPECT_NE(text.find("\xe2\x80\xaa"), std::string::npos) << "a character that only starts alike stays";
}

TEST(JsonForScript, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(json_for_script(R"({"a":"b > c & d"})"), R"({"a":"b > c & d"})");
  EXPECT_EQ(json_for_script(""), "");
  EXPECT_EQ(json_for_script("\xe2"), "\xe2");
}

TEST(RenderHtml, HoldsTheReportOnceOrSaysWhyNot) {
  analyzers::Report report;
  report.run.command = {"</script><script>alert(1)</script>"};
  const auto page = render_html(report);
  if (!has_html_page()) {
    ASSERT_TRUE(std::holds_alternative<HtmlError>(page));
    EXPECT_NE(std::get<HtmlError>(page).message.find("AMPSCOPE_BUILD_VIEWER"), std::string::npos);
    return;
  }
  ASSERT_TRUE(std::holds_alternative<std::string>(page));
  const std::string& html = std::get<std::string>(page);
  EXPECT_EQ(html.find("</script><script>alert(1)"), std::string::npos);
  EXPECT_EQ(html.find(">AMPSCOPE_REPORT<"), std::string::npos);
  EXPECT_NE(html.find("\"ampscope.report/1\""), std::string::npos);
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_LT(html_page().size(), 300'000U);
}

TEST(HtmlPage, NamesNothingElsewhere) {
  const std::string page(html_page());
  for (const char* const way : {"src=\"http", "href=\"http", "url(http", "@import", "//cdn"}) {
    EXPECT_EQ(page.find(way), std::string::npos) << way;
  }
}

}  // namespace
}  // namespace ampscope::reporters
