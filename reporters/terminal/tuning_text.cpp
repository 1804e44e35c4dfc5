#include "reporters/terminal/tuning_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "reporters/common/numbers.h"
#include "reporters/common/text.h"
#include "reporters/terminal/layout.h"
#include "reporters/terminal/paint.h"

namespace ampscope::reporters {
namespace {

using analyzers::Prediction;
using analyzers::ScalerSettings;
using analyzers::TuningReport;

constexpr std::size_t label_width = 26;
constexpr std::size_t column_width = 14;

struct Column {
  std::string name;
  const ScalerSettings* settings;
  const Prediction* predicted;
};

std::string interval(const Prediction& prediction) {
  std::string skips = analyzers::count_of(prediction.whole.skips);
  if (prediction.skips_low == prediction.skips_high) return skips;
  return fmt::format("{} ({}–{})", skips, analyzers::count_of(prediction.skips_low),
                     analyzers::count_of(prediction.skips_high));
}

class Sheet {
 public:
  Sheet(int width, bool colour) : width_(width), paint_(colour) {}

  void line(Tone tone, const std::string& text, int indent = 0) {
    const std::string margin(static_cast<std::size_t>(indent), ' ');
    for (const std::string& part : wrap(printable(text), width_ - indent))
      text_ += margin + paint_(tone, part) + "\n";
  }

  /// Code is never broken.
  void code(const std::string& language, const std::string& line) {
    text_ += pad_right("  " + language, 10) + paint_(Tone::fix, printable(line)) + "\n";
  }

  void item(const std::string& name, const std::string& text) {
    constexpr int column = 20;
    std::string start = pad_right("  " + name, column - 1) + " ";
    for (const std::string& part : wrap(printable(text), width_ - column)) {
      text_ += start + part + "\n";
      start = std::string(column, ' ');
    }
  }

  template <typename Spell>
  void row(const std::string& label, const std::vector<Column>& columns, Spell spell) {
    std::string line = pad_right("  " + label, label_width);
    for (const Column& column : columns)
      line += pad_right(spell(column), column_width) + "  ";
    text_ += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }

  void gap() { text_ += '\n'; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  int width_;
  Painter paint_;
  std::string text_;
};

void table(Sheet& sheet, const TuningReport& report) {
  const analyzers::Tuning& tuning = report.tuning;
  std::vector<Column> columns = {{"today", &tuning.today, &tuning.predicted_today}};
  if (tuning.changed) columns.push_back({"recommended", &tuning.recommended, &tuning.predicted_recommended});
  if (report.asked) columns.push_back({"as asked", &report.asked->settings, &report.asked->predicted});
  sheet.row("", columns, [](const Column& column) { return column.name; });
  sheet.row("init_scale", columns, [](const Column& column) { return spell_scale(column.settings->init_scale); });
  sheet.row("growth_factor", columns,
            [](const Column& column) { return analyzers::number(column.settings->growth_factor); });
  sheet.row("backoff_factor", columns,
            [](const Column& column) { return analyzers::number(column.settings->backoff_factor); });
  sheet.row("growth_interval", columns,
            [](const Column& column) { return analyzers::count_of(column.settings->growth_interval); });
  sheet.gap();
  sheet.row("skipped steps", columns, [](const Column& column) { return interval(*column.predicted); });
  sheet.row("flushed to zero", columns,
            [](const Column& column) { return analyzers::share(column.predicted->whole.flushed_share()); });
  sheet.row("gradient elements lost", columns,
            [](const Column& column) { return analyzers::share(column.predicted->whole.lost()); });
  if (report.kept_back_step != trace::none) {
    sheet.row(fmt::format("  from step {} on", report.kept_back_step), columns,
              [](const Column& column) { return analyzers::share(column.predicted->kept_back.lost()); });
  }
  sheet.row("updates to settle", columns,
            [](const Column& column) { return analyzers::count_of(column.predicted->settled_after); });
  sheet.row("final scale", columns, [](const Column& column) { return spell_scale(column.predicted->final_scale); });
}

std::string names_of(const std::vector<analyzers::PredictedParameter>& list, const TuningReport& report) {
  std::string text;
  for (const analyzers::PredictedParameter& parameter : list) {
    const auto index = static_cast<std::size_t>(parameter.parameter);
    const std::string name = index < report.parameters.size() ? report.parameters[index] : "";
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, analyzers::share(parameter.flushed));
  }
  return text;
}

void verdict(Sheet& sheet, const TuningReport& report) {
  const analyzers::Tuning& tuning = report.tuning;
  if (const auto& none = tuning.no_scale_fits) {
    if (none->forward) {
      sheet.line(Tone::error, fmt::format("no scale fits: {} of the steps are non-finite whatever the loss scale",
                                          analyzers::share(none->share_of_steps)));
      sheet.line(Tone::plain,
                 "The loss itself, or a derivative, has no finite value there; ampscope report names the cause.", 2);
    } else {
      sheet.line(
          Tone::error,
          fmt::format("no scale fits: at {}, the largest scale that overflows nothing, {} of the gradient elements "
                      "are still flushed to zero",
                      spell_scale(none->largest_scale), analyzers::share(none->lost)));
      sheet.line(
          Tone::plain,
          none->all_zero > 0
              ? fmt::format("Of {} not one gradient element is kept.", analyzers::plural(none->all_zero, "parameter"))
              : fmt::format("Gradients span 2^{:.0f} between the smallest and the largest; fp16 holds 2^40.",
                            none->range),
          2);
      if (!none->parameters.empty()) sheet.item("flushed in", names_of(none->parameters, report));
    }
    for (const std::string& place : report.overflow_places)
      sheet.item("overflows in", place);
    sheet.item("do",
               "run these layers in fp32 (torch.autocast(…, enabled=False) around them), or train in bfloat16, "
               "which needs no scaler");
    sheet.gap();
  }
  if (!tuning.changed) {
    sheet.line(Tone::strong, "keep today's settings: " + analyzers::summary(tuning));
  } else {
    sheet.line(Tone::strong, "recommended: " + analyzers::summary(tuning));
  }
}

void scaler(Sheet& sheet, const TuningReport& report) {
  sheet.line(
      Tone::strong,
      fmt::format("{}{}{} · {}, steps {}–{}", report.implementation, report.source.empty() ? "" : " at ", report.source,
                  analyzers::plural(report.updates, "update"), report.first_step, report.last_step));
  if (!report.not_tuned_because.empty()) {
    sheet.line(Tone::plain, "not tuned: " + report.not_tuned_because);
    return;
  }
  if (report.restored) {
    sheet.item("restored", "its scale and settings come from a checkpoint, which replaces those of the constructor");
  }
  for (const std::string& sentence : report.disagreements)
    sheet.item("not its own", sentence);
  sheet.gap();
  verdict(sheet, report);
  sheet.gap();
  table(sheet, report);
  sheet.gap();
  for (const analyzers::SettingChoice& choice : report.tuning.choices)
    sheet.item(choice.name, choice.reason);
  sheet.gap();
  sheet.code("Python", analyzers::python_line(report.tuning, report.restored, report.device_type));
  sheet.code("C++", analyzers::cpp_line(report.tuning, report.restored));
  sheet.gap();
  sheet.line(
      Tone::faint,
      fmt::format("Today's settings skipped {} in this run, {} predicted. {} of the steps were measured each for "
                  "itself; what is skipped otherwise changes later gradients, which the interval allows for.",
                  analyzers::count_of(report.tuning.actual_skips),
                  analyzers::count_of(report.tuning.predicted_today.whole.skips),
                  analyzers::share(report.tuning.measured)));
}

}  // namespace

std::string render_tuning(const std::vector<TuningReport>& scalers, int width, bool colour) {
  Sheet sheet(width, colour);
  for (std::size_t i = 0; i < scalers.size(); ++i) {
    if (i > 0) sheet.gap();
    scaler(sheet, scalers[i]);
  }
  return sheet.text();
}

}  // namespace ampscope::reporters
