#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

Claim claim(const RuleContext&, const Origin& origin) {
  if (origin.op != OpKind::matmul || !made_here(origin)) return Claim::none;
  const trace::NonfiniteEvent& event = *origin.event;
  const double limit = trace::float_limits(compute_dtype(event, *origin.site)).max;
  const auto largest = inputs_finite(event) ? largest_product(origin) : std::nullopt;
  if (limit == 0 || !largest || *largest >= limit) return Claim::none;
  // Other libraries' operators are not computed again; that they do what their name says is all there is to go by.
  if (!event.replay.done)
    return !origin.site->name.starts_with("aten::") && *largest < limit / 4 ? Claim::supported : Claim::none;
  return event.replay.finite && event.replay.absmax <= limit / 4 ? Claim::proven : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const trace::DType dtype = compute_dtype(event, *origin.site);
  const double largest = largest_product(origin).value_or(trace::float_limits(dtype).max);
  finding.title = fmt::format("{} in {} returns values that its inputs cannot give", base_name(origin.site->name),
                              trace::short_dtype_name(dtype));
  finding.message = fmt::format(
      "{} returns {} of {} from finite inputs ({}). No sum of their products can pass {}{}: the kernel of this device "
      "or library is at fault, not the program.",
      context.view().describe(origin.site->id), describe_bad(counts),
      count_of(static_cast<std::int64_t>(counts.elements)), describe_tensors(event.inputs), number(largest),
      event.replay.done ? fmt::format(", and {} gives {} at most", event.replay.precision, number(event.replay.absmax))
                        : "");
  finding.message += describe_outcome(origin);
  finding.same_in_fp32 = false;
  finding.proof =
      fmt::format("{} of {} · {}", describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)),
                  event.replay.done ? fmt::format("{} gives {}", event.replay.precision, number(event.replay.absmax))
                                    : fmt::format("no sum of these products can pass {}", number(largest)));
  finding.evidence.emplace_back("largest_possible", largest);
  add_scene(origin, finding);
  finding.fix =
      "do not use this precision on this device (autocast(enabled=False), or bfloat16), or another version of the "
      "library "
      "(torch.backends.cudnn.enabled = False shows whether it is cuDNN)";
  finding.fix_cpp = "do not use this precision on this device, or another version of the library";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp613;
const Rule rule_amp613 = {
    .code = "AMP613",
    .name = "backend-fault",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary =
        "a kernel returns non-finite values for small finite inputs, and computing it again gives ordinary numbers",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
