#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

/// The input of the softmax: the first floating one.
const trace::WitnessTensor* scores_of(const trace::NonfiniteEvent& event) {
  const auto found = std::find_if(event.inputs.begin(), event.inputs.end(), [](const trace::WitnessTensor& input) {
    return trace::is_floating(input.type.dtype);
  });
  return found != event.inputs.end() ? &*found : nullptr;
}

bool only_masked(const trace::WitnessTensor& input) {
  return input.looked_at && input.stats.negative_infinity != 0 && input.stats.nan == 0 &&
         input.stats.positive_infinity == 0;
}

bool is_softmax(const Origin& origin) {
  return origin.op == OpKind::softmax;
}

bool is_attention(const Origin& origin) {
  return base_name(origin.site->name).find("attention") != std::string_view::npos;
}

/// A softmax written by hand: scores less their largest.
bool is_shift_by_largest(const TraceView& view, const Origin& origin) {
  if (base_name(origin.site->name) != "sub" || origin.event->inputs.size() < 2) return false;
  const auto& inputs = origin.event->inputs;
  if (!only_masked(inputs[0]) || !only_masked(inputs[1])) return false;
  if (node_of(view, origin).starts_with("Logsumexp")) return true;
  const trace::Site* const made = view.site(inputs[1].type.producer);
  if (made == nullptr) return false;
  const std::string_view base = base_name(made->name);
  return base == "amax" || base == "max" || base == "logsumexp";
}

Claim claim(const RuleContext& context, const Origin& origin) {
  const trace::NonfiniteEvent& event = *origin.event;
  if (origin.site->id != event.site || output_counts(event).nan == 0) return Claim::none;
  // -inf that was put there on purpose, or came out of nothing that was seen, such as a mask kept since before
  // training.
  if (!origin.from_intended_infinity && origin.kind != trace::OriginKind::input) return Claim::none;
  if (is_softmax(origin)) {
    const trace::WitnessTensor* const scores = scores_of(event);
    return scores != nullptr && only_masked(*scores) ? Claim::proven : Claim::none;
  }
  if (is_shift_by_largest(context.view(), origin)) return Claim::supported;
  if (!is_attention(origin)) return Claim::none;
  const bool masked = std::any_of(event.inputs.begin(), event.inputs.end(), only_masked);
  const bool others = std::any_of(event.inputs.begin(), event.inputs.end(), [](const trace::WitnessTensor& input) {
    return input.stats.nan != 0 || input.stats.positive_infinity != 0;
  });
  return masked && !others ? Claim::supported : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const trace::WitnessTensor* const scores = scores_of(event);
  finding.title = "a row of the softmax is masked out as a whole";
  finding.message =
      fmt::format("{} gets rows that hold nothing but -inf and makes {} of {} results NaN.",
                  context.view().describe(origin.site->id), count_of(static_cast<std::int64_t>(counts.nan)),
                  count_of(static_cast<std::int64_t>(counts.elements)));
  finding.proof = fmt::format("{} of {}", describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)));
  // A softmax spoils whole rows, so their length divides the NaN.
  if (is_softmax(origin) && scores != nullptr && !scores->type.shape.empty()) {
    const std::span<const double> scalars = scalars_of(origin);
    const auto rank = static_cast<std::int64_t>(scores->type.shape.size());
    const auto dimension = static_cast<std::int64_t>(scalars.empty() ? -1 : scalars.front());
    const std::int64_t index = dimension < 0 ? dimension + rank : dimension;
    const std::int64_t length = index >= 0 && index < rank ? scores->type.shape[static_cast<std::size_t>(index)] : 0;
    if (length > 0 && static_cast<std::int64_t>(counts.nan) % length == 0) {
      const std::int64_t rows = static_cast<std::int64_t>(counts.nan) / length;
      finding.message += fmt::format(" {} of {} are empty.", count_of(rows),
                                     plural(static_cast<std::int64_t>(counts.elements) / length, "row"));
      finding.proof = fmt::format("{} of {} empty", count_of(rows),
                                  plural(static_cast<std::int64_t>(counts.elements) / length, "row"));
      finding.evidence.emplace_back("empty_rows", static_cast<double>(rows));
    }
  }
  finding.message +=
      " Multiplying the result by a mask later does not help: 0 times NaN is NaN, in backward too. fp32 gives the "
      "same.";
  finding.message += describe_outcome(origin);
  add_scene(origin, finding);
  finding.fix =
      "leave every row a key: mask = mask & ~mask.all(-1, keepdim=True), and drop such rows afterwards; or fill with "
      "torch.finfo(scores.dtype).min instead of -inf";
  finding.fix_cpp = "leave every row a key, or fill with the lowest finite value of the type instead of -inf";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp603;
const Rule rule_amp603 = {
    .code = "AMP603",
    .name = "empty-softmax-row",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "a row of a softmax holds nothing but -inf: everything in it is masked",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
