#include "cli/output/markdown.h"

#include <gtest/gtest.h>

namespace ampscope::cli {
namespace {

TEST(Markdown, FillsParagraphsAndKeepsCode) {
  EXPECT_EQ(render_markdown("# AMP202 clip\n\nGradients are *clipped* while\nthey are `scaled`.\n\n```python\nif x:\n  "
                            "  y()\n```\nEnd.\n",
                            30, false),
            "AMP202 clip\n\nGradients are clipped while\nthey are scaled.\n\n    if x:\n        y()\nEnd.\n");
}

TEST(Markdown, HangsLists) {
  EXPECT_EQ(render_markdown("- one two three\n  four\n  - nested item here\n10. ten eleven twelve\n", 16, false),
            "- one two three\n  four\n  - nested item\n    here\n10. ten eleven\n    twelve\n");
}

TEST(Markdown, ReadsLinksOut) {
  EXPECT_EQ(render_markdown("See [AMP101](AMP101.md) and [the page](https://example.org/a).", 80, false),
            "See AMP101 and the page (https://example.org/a).\n");
}

TEST(Markdown, LeavesOtherMarksAlone) {
  EXPECT_EQ(render_markdown("2 * 3 * 4, **so**, a `` ` `` and [x], __init__, snake_case_name", 80, false),
            "2 * 3 * 4, so, a ` and [x], __init__, snake_case_name\n");
}

TEST(Markdown, KeepsTables) {
  EXPECT_EQ(render_markdown("| a | b |\n|---|---|\n| 1 | `x` |\n", 10, false),
            "  | a | b |\n  |---|---|\n  | 1 | `x` |\n");
}

TEST(Markdown, PaintsOnlyWhenAsked) {
  const std::string text = render_markdown("# Title\n\nA `word`.\n", 80, true);
  EXPECT_EQ(text, "\x1b[1mTitle\x1b[0m\n\nA \x1b[1;36mword\x1b[0m.\n");
}

TEST(Markdown, OfNothingIsNothing) {
  EXPECT_EQ(render_markdown("", 80, false), "");
}

}  // namespace
}  // namespace ampscope::cli
