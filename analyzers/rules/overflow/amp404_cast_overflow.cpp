#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/range.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

/// The input that was cast: the largest of those looked at; of a copy in place the target is not among them.
const trace::WitnessTensor* cast_input(const trace::NonfiniteEvent& event) {
  const trace::WitnessTensor* found = nullptr;
  for (const trace::WitnessTensor& input : event.inputs) {
    if (input.looked_at && (found == nullptr || input.stats.absmax > found->stats.absmax)) found = &input;
  }
  return found;
}

Claim claim(const RuleContext& context, const Origin& origin) {
  if (origin.op != OpKind::cast || origin.from_intended_infinity || origin.kind == trace::OriginKind::input)
    return Claim::none;
  if (accumulates_wider(context.view(), origin) != nullptr) return Claim::none;
  const trace::DType to = output_dtype(*origin.event);
  if (to == trace::DType::unknown) return Claim::none;
  if (origin.site->id != origin.event->site) return trace::is_half(to) ? Claim::plausible : Claim::none;
  const trace::WitnessTensor* const from = cast_input(*origin.event);
  if (from == nullptr) return trace::is_half(to) ? Claim::plausible : Claim::none;
  if (from->stats.nonfinite() != 0 || from->stats.absmax <= trace::float_limits(to).max) return Claim::none;
  // A constant that the program chose explains more than that its cast overflowed.
  return mask_constant(origin) ? Claim::supported : behind_wider_cause(context.view(), origin, Claim::proven);
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  const trace::NonfiniteEvent& event = *origin.event;
  const trace::DType to = output_dtype(event);
  const trace::WitnessTensor* const from = cast_input(event);
  const NonfiniteCounts counts = output_counts(event);
  const double limit = trace::float_limits(to).max;
  // copy_ inside _to_copy inside to: the outermost of them is what the program or autocast called.
  const trace::Site* cast = origin.site;
  for (const trace::Site* at = cast; at != nullptr && op_kind(at->name) == OpKind::cast; at = view.parent(*at))
    cast = at;
  finding.culprit.op = cast->name;
  const trace::Site* const outer = view.outermost_op(origin.site->id);
  const bool by_autocast = outer != nullptr && outer->id != origin.site->id && op_kind(outer->name) != OpKind::cast;
  finding.title = fmt::format("a cast to {} turns finite values into infinity", trace::short_dtype_name(to));
  if (by_autocast) {
    finding.message =
        fmt::format("Autocast casts an input of {} to {}", view.describe(outer->id), trace::short_dtype_name(to));
    finding.evidence.emplace_back("cast_for", outer->name);
  } else {
    finding.message = fmt::format("{} casts to {}", view.describe(cast->id), trace::short_dtype_name(to));
  }
  if (from != nullptr) {
    finding.message += fmt::format(": the largest value is {}, {} ends at {}.", number(from->stats.absmax),
                                   trace::short_dtype_name(to), number(limit));
    finding.proof = fmt::format("largest value {} · {} ends at {} · {}", number(from->stats.absmax),
                                trace::short_dtype_name(to), number(limit), describe_bad(counts));
    finding.evidence.emplace_back("largest", from->stats.absmax);
    finding.evidence.emplace_back("from_dtype", trace::dtype_name(from->type.dtype));
  } else {
    finding.message += fmt::format(", which ends at {}.", number(limit));
    finding.proof = fmt::format("{} ends at {} · {}", trace::short_dtype_name(to), number(limit), describe_bad(counts));
  }
  finding.evidence.emplace_back("to_dtype", trace::dtype_name(to));
  finding.evidence.emplace_back("limit", limit);
  finding.message += describe_outcome(origin);
  add_scene(origin, finding);
  finding.fix =
      "bring the values into range before (divide by their known largest, normalise), or keep this part in fp32: with "
      "torch.autocast(device_type, enabled=False): …";
  finding.fix_cpp = "bring the values into range before, or run this part in fp32 outside the autocast guard";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp404;
const Rule rule_amp404 = {
    .code = "AMP404",
    .name = "cast-overflow",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "a cast turns finite values into infinity",
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .holds_for_metrics = true,
    .explain = explain,
};

}  // namespace ampscope::analyzers
