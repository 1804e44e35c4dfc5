#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

bool is_mean(std::string_view base) {
  return base == "mean" || base == "nanmean" || base == "var" || base == "std" || base == "var_mean" ||
         base == "std_mean" || base.find("loss") != std::string_view::npos ||
         base.find("cross_entropy") != std::string_view::npos || base == "kl_div" || base == "embedding_bag";
}

/// A floating input without an element.
const trace::WitnessTensor* empty_input(const trace::NonfiniteEvent& event) {
  const auto found = std::find_if(event.inputs.begin(), event.inputs.end(), [](const trace::WitnessTensor& input) {
    return trace::is_floating(input.type.dtype) && input.looked_at && input.stats.count == 0;
  });
  return found != event.inputs.end() ? &*found : nullptr;
}

/// nll_loss returns the weight of the targets that counted beside the loss: 0 when all were ignored.
bool nothing_counted(const trace::NonfiniteEvent& event, std::string_view base) {
  return base.starts_with("nll_loss") && event.outputs.size() >= 2 && event.outputs[1].stats.count == 1 &&
         event.outputs[1].stats.zero == 1;
}

/// On a CPU a mean is a sum that is then divided by the number of elements: the mean around such a division by 0.
const trace::Site* mean_around(const TraceView& view, const Origin& origin) {
  if (base_name(origin.site->name) != "div") return nullptr;
  const Divisor divisor = divisor_of(origin);
  if (!divisor.known || !divisor.is_number || divisor.number != 0) return nullptr;
  const trace::Site* outer = view.parent(*origin.site);
  while (outer != nullptr && base_name(outer->name) == "div")  // by a number, which calls that by a tensor
    outer = view.parent(*outer);
  return outer != nullptr && is_mean(base_name(outer->name)) ? outer : nullptr;
}

Claim claim(const RuleContext& context, const Origin& origin) {
  const trace::NonfiniteEvent& event = *origin.event;
  if (origin.site->id != event.site || origin.phase == trace::Phase::backward) return Claim::none;
  if (!inputs_finite(event) || output_counts(event).nan == 0) return Claim::none;
  const std::string_view base = base_name(origin.site->name);
  if (nothing_counted(event, base) || mean_around(context.view(), origin) != nullptr) return Claim::proven;
  return is_mean(base) && empty_input(event) != nullptr ? Claim::proven : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const std::string_view base = base_name(origin.site->name);
  const std::string where = context.view().describe(origin.site->id);
  const trace::WitnessTensor* const empty = empty_input(event);
  if (const trace::Site* const mean = mean_around(context.view(), origin); mean != nullptr) {
    finding.culprit.op = mean->name;
    finding.title = fmt::format("a {} is taken over an empty tensor", base_name(mean->name));
    finding.message =
        fmt::format("{} divides a sum over no element by 0, their number.", context.view().describe(mean->id));
    finding.proof = "0 elements, and 0/0";
    finding.fix = "skip the empty selection: if mask.any(): …; or x[mask].sum() / mask.sum().clamp(min=1)";
    finding.fix_cpp = "skip the empty selection, or divide the sum by the count clamped to at least 1";
  } else if (empty == nullptr) {
    const std::int64_t targets =
        event.inputs.empty() || event.inputs[0].type.shape.empty() ? 0 : event.inputs[0].type.shape[0];
    finding.title = "all targets of a batch are ignored, and the loss is a mean over none";
    finding.message = fmt::format("{} averages over the targets that count, and none of {} does.", where,
                                  targets > 0 ? count_of(targets) : "them");
    finding.proof = fmt::format("0 of {} targets count", targets > 0 ? count_of(targets) : "the");
    finding.evidence.emplace_back("targets", static_cast<double>(targets));
    finding.fix =
        "skip such a batch, or F.cross_entropy(…, reduction='sum') / (targets != ignore_index).sum().clamp(min=1)";
    finding.fix_cpp = "skip such a batch, or sum the loss and divide by the count clamped to at least 1";
  } else {
    finding.title = fmt::format("a {} is taken over an empty tensor", base);
    finding.message = fmt::format("{} gets {}: no element, and 0/0.", where, describe_tensor(*empty));
    finding.proof = fmt::format("0 elements · {}", describe_tensor(*empty));
    finding.fix = "skip the empty selection: if mask.any(): …; or x[mask].sum() / mask.sum().clamp(min=1)";
    finding.fix_cpp =
        "skip the empty selection: if (x.numel() > 0) …; or divide the sum by the count clamped to at least 1";
  }
  finding.message += " fp32 gives the same.";
  finding.message += describe_outcome(origin);
  finding.evidence.emplace_back("elements", 0.0);
  add_scene(origin, finding);
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp604;
const Rule rule_amp604 = {
    .code = "AMP604",
    .name = "mean-over-empty",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "a mean is taken over no element: an empty selection, or labels that are all ignored",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
