#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/exchange.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/hidden.h"

namespace ampscope::analyzers {

namespace {

bool divides(std::string_view base) {
  return base == "div" || base == "true_divide" || base == "reciprocal" || base == "rsqrt" || base == "foreach_div" ||
         base == "addcdiv";
}

bool meets_zero(const trace::NonfiniteEvent& event) {
  return std::any_of(event.inputs.begin(), event.inputs.end(),
                     [](const trace::WitnessTensor& input) { return input.looked_at && input.stats.zero != 0; });
}

/// Whether the same would have been finite in fp32, as far as can be told.
bool precision_fault(const Origin& origin) {
  const trace::NonfiniteEvent& event = *origin.event;
  // What ran in fp32 is no fault of mixed precision, even where fp64 would have kept it finite.
  if (!trace::is_half(compute_dtype(event, *origin.site))) return false;
  if (event.replay.done) return event.replay.finite;
  if (origin.kind != trace::OriginKind::producer || origin.from_intended_infinity) return false;
  if (compute_dtype(event, *origin.site) != trace::DType::float16) return false;
  return output_counts(event).infinite() != 0 && !(divides(base_name(origin.site->name)) && meets_zero(event));
}

Claim claim(const RuleContext&, const Origin&) {
  return Claim::fallback;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const std::string where = view.describe(origin.site->id);
  const char* const what = counts.nan != 0 && counts.infinite() == 0   ? "NaN"
                           : counts.nan == 0 && counts.infinite() != 0 ? "infinity"
                                                                       : "NaN or infinity";
  finding.precision_fault = precision_fault(origin);
  finding.same_in_fp32 = event.replay.done && !event.replay.finite;
  if (origin.parameter != trace::none) {
    const trace::Parameter* const parameter = view.parameter(origin.parameter);
    const std::string name = parameter != nullptr ? parameter->name : "a parameter";
    finding.title = fmt::format("the weight {} is non-finite before the operation that first shows it", name);
    finding.message = fmt::format(
        "{} reads {} in step {}, and nothing that was watched made it so: {}a loaded checkpoint, or an update that was "
        "not seen.",
        where, name, count_of(event.step), event.step == 0 ? "memory that was never filled (torch.empty), " : "");
    finding.culprit.parameter = name;
    finding.fix = event.step == 0
                      ? "initialise it (torch.nn.init), or check the checkpoint that was loaded"
                      : "check the checkpoint that was loaded, and what writes this weight besides the optimizer";
  } else if (is_collective(*view.outermost_op(origin.site->id))) {
    finding.title = fmt::format("{} arrives from another process through {}", what, base_name(origin.site->name));
    finding.message = fmt::format("{} brings {} of {} non-finite from other ranks; what this one gave was finite.",
                                  where, describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)));
    finding.fix = "look at the traces of the other ranks: ampscope report run.ampscope run.rank*.ampscope";
  } else if (origin.site->id != event.site) {
    finding.title = fmt::format("{} comes from {} or something before it that was not looked at", what,
                                base_name(origin.site->name));
    finding.message = fmt::format(
        "{} is the first operation that was seen to pass it on; the one before whose results were not looked at is {}.",
        view.describe(event.site), where);
    finding.fix = "run again with --level full to see the operations in between";
  } else if (origin.kind == trace::OriginKind::input && hidden_region(view, *origin.site) != nullptr) {
    finding.title =
        fmt::format("{} comes out of compiled code and is first seen in {}", what, base_name(origin.site->name));
    finding.message = fmt::format(
        "An input of {} is non-finite already. It lies in a compiled region, whose own kernels are not observed: one "
        "of them made it, or the data hold it.",
        where);
    finding.fix = "run again with TORCHDYNAMO_DISABLE=1 (or backend=\"eager\"), so that compiled regions are seen";
  } else if (origin.kind != trace::OriginKind::producer && !origin.from_intended_infinity) {
    finding.title = fmt::format("{} is first seen in {}, which only passes it on", what, base_name(origin.site->name));
    finding.message = fmt::format("An input of {} is non-finite already, and what made it was not observed.", where);
    const bool all_seen = view.run().level >= trace::Level::full;
    finding.fix = !context.trace().hidden_regions.empty()
                      ? "run again with TORCHDYNAMO_DISABLE=1, so that compiled regions are seen"
                  : all_seen
                      ? "look at where this input comes from: memory that was never filled (torch.empty), or code "
                        "that does not use torch"
                      : "run again with --level full";
  } else if (origin.from_intended_infinity) {
    finding.title =
        fmt::format("{} makes NaN of infinities that were put there on purpose", base_name(origin.site->name));
    finding.message = fmt::format(
        "The only non-finite inputs of {} are infinities of a mask or a constant; its result holds {} of {}.", where,
        describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)));
    finding.fix =
        "make sure that not everything is masked, and select with torch.where instead of multiplying by a mask";
  } else {
    finding.title = fmt::format("{} is first made by {}", what, base_name(origin.site->name));
    finding.message = fmt::format("{} makes the first non-finite values ({} of {}) from finite inputs: {}.", where,
                                  describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)),
                                  describe_tensors(event.inputs));
    finding.fix = divides(base_name(origin.site->name)) && meets_zero(event)
                      ? "guard the denominator: torch.where(d != 0, n / d.clamp(min=eps), 0)"
                      : "look at the values that go into this operation, and guard the case that has no finite result";
  }
  if (event.replay.done && !event.replay.finite)
    finding.message += fmt::format(" In {} it is non-finite too.", event.replay.precision);
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("{} of {} · inputs: {}", describe_bad(counts),
                              count_of(static_cast<std::int64_t>(counts.elements)), describe_tensors(event.inputs));
  add_scene(origin, finding);
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 3> symptom_of = {"AMP208", "AMP211", "AMP504"};

}  // namespace

extern const Rule rule_amp614;
const Rule rule_amp614 = {
    .code = "AMP614",
    .name = "nonfinite-origin",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "where the first non-finite value was made, when nothing more specific is known",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
