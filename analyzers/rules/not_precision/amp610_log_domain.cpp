#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

struct Domain {
  std::string_view base;
  double least;      ///< below it the result is NaN
  double most;       ///< above it the result is NaN
  const char* says;  ///< of a value outside
};

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr std::array domains = {
    Domain{"log", 0, unbounded, "the logarithm of a negative number"},
    Domain{"log2", 0, unbounded, "the logarithm of a negative number"},
    Domain{"log10", 0, unbounded, "the logarithm of a negative number"},
    Domain{"log1p", -1, unbounded, "log1p of a number below -1"},
    Domain{"sqrt", 0, unbounded, "the square root of a negative number"},
    Domain{"rsqrt", 0, unbounded, "the square root of a negative number"},
    Domain{"logit", 0, 1, "logit outside of 0 to 1"},
    Domain{"acos", -1, 1, "acos outside of -1 to 1"},
    Domain{"asin", -1, 1, "asin outside of -1 to 1"},
    Domain{"atanh", -1, 1, "atanh outside of -1 to 1"},
    Domain{"acosh", 1, unbounded, "acosh of a number below 1"},
    Domain{"erfinv", -1, 1, "erfinv outside of -1 to 1"},
    Domain{"pow", 0, unbounded, "a fractional power of a negative number"},
    Domain{"float_power", 0, unbounded, "a fractional power of a negative number"},
    Domain{"xlogy", 0, unbounded, "the logarithm of a negative number"},
};

const Domain* domain_of(const trace::Site& site) {
  const std::string_view base = base_name(site.name);
  const auto found =
      std::find_if(domains.begin(), domains.end(), [&](const Domain& each) { return each.base == base; });
  return found != domains.end() ? &*found : nullptr;
}

/// The argument that has to lie in the domain.
const trace::WitnessTensor* argument_of(const Origin& origin) {
  const auto& inputs = origin.event->inputs;
  const std::size_t index = base_name(origin.site->name) == "xlogy" && inputs.size() > 1 ? 1 : 0;
  return index < inputs.size() ? &inputs[index] : nullptr;
}

/// A logarithm at the very end of its domain is -inf.
bool at_the_end(const Origin& origin, const Domain& domain) {
  const trace::WitnessTensor* const argument = argument_of(origin);
  if (!domain.base.starts_with("log") && domain.base != "xlogy") return false;
  if (argument == nullptr || !argument->looked_at || output_counts(*origin.event).infinite() == 0) return false;
  const double end = domain.base == "log1p" ? -1 : 0;
  return argument->stats.zero != 0 || argument->stats.min == end || argument->stats.max == domain.most;
}

/// A difference of two half-precision numbers that is as small as their own rounding.
struct Cancellation {
  const trace::Site* site = nullptr;
  trace::DType dtype = trace::DType::unknown;
  double operands = 0;  ///< largest of them
  double step = 0;      ///< distance of neighbouring values there
};

/// The largest value that the operands of `site` had in `step`, or in any step where that was not looked at.
double largest_operand(const TraceView& view, const trace::Site& site, std::int64_t step) {
  double largest = 0;
  for (const std::int64_t producer : view.producers(site.id)) {
    double known = view.totals(producer).absmax;
    for (const trace::SiteNumerics* row : view.numerics(producer)) {
      if (row->step == step) known = row->stats.absmax;
    }
    largest = std::max(largest, known);
  }
  return largest;
}

/// The difference that `argument` is, through casts, views and numbers that are added to it or multiply it, where it is
/// negative by no more than rounding explains: E[x²] − E[x]² is never negative otherwise.
Cancellation cancellation_before(const TraceView& view, const trace::WitnessTensor& argument, std::int64_t step) {
  constexpr int most_steps_back = 5;
  constexpr double most_roundings = 8;
  if (!argument.looked_at || argument.stats.min >= 0) return {};
  const trace::Site* site = view.site(argument.type.producer);
  for (int i = 0; site != nullptr && i < most_steps_back; ++i) {
    const auto tensors = std::count_if(site->inputs.begin(), site->inputs.end(), [](const trace::TensorType& input) {
      return trace::is_floating(input.dtype) && !input.shape.empty();
    });
    const std::string_view base = base_name(site->name);
    if ((base == "sub" || base == "rsub") && tensors >= 2) {
      const trace::DType dtype = site->outputs.empty() ? site->compute_dtype : site->outputs.front().dtype;
      const double largest = largest_operand(view, *site, step);
      if (!trace::is_half(dtype) || largest <= 0) return {};
      const double ulp = std::exp2(std::floor(std::log2(largest)) + 1 - trace::float_limits(dtype).significand_bits);
      return -argument.stats.min <= most_roundings * ulp ? Cancellation{site, dtype, largest, ulp} : Cancellation{};
    }
    const OpKind kind = op_kind(site->name);
    const bool hands_on = kind == OpKind::move || kind == OpKind::cast ||
                          ((base == "add" || base == "mul" || base == "div" || base == "sub") && tensors == 1);
    if (!hands_on) return {};
    const std::vector<std::int64_t> before = view.producers(site->id);
    if (before.size() != 1) return {};
    site = view.site(before.front());
  }
  return {};
}

void explain_cancellation(const RuleContext& context, const Origin& origin, const Cancellation& lost,
                          Finding& finding) {
  const TraceView& view = context.view();
  const trace::WitnessTensor& argument = *argument_of(origin);
  const std::string type = trace::short_dtype_name(lost.dtype);
  const NonfiniteCounts counts = output_counts(*origin.event);
  finding.culprit = context.culprit(lost.site->id);
  finding.precision_fault = true;
  finding.same_in_fp32 = false;
  finding.title =
      fmt::format("a difference of nearly equal {} values is negative by rounding, and {} needs it positive", type,
                  base_name(origin.site->name));
  finding.message = fmt::format(
      "{} subtracts {} values of up to {}, which stand {} apart there. What is left is {}, negative by no more than "
      "their "
      "rounding, and {} makes {} of {} results of it. A variance as E[x²] - E[x]² loses its digits like this.",
      view.describe(lost.site->id), type, number(lost.operands), number(lost.step), describe_range(argument.stats),
      view.describe(origin.site->id), describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)));
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("operands up to {}, {} apart in {} · argument {} · {} of {}", number(lost.operands),
                              number(lost.step), type, describe_range(argument.stats), describe_bad(counts),
                              count_of(static_cast<std::int64_t>(counts.elements)));
  finding.evidence.emplace_back("largest_operand", lost.operands);
  finding.evidence.emplace_back("rounding", lost.step);
  finding.evidence.emplace_back("smallest", argument.stats.min);
  finding.evidence.emplace_back("met_by", view.describe(origin.site->id));
  add_scene(origin, finding);
  finding.fix = "compute it in fp32: x.float() before the squares, and as the mean of (x - mean)²";
  finding.fix_cpp = "compute it in fp32: x.to(torch::kFloat) before the squares, and as the mean of (x - mean)²";
}

Claim claim(const RuleContext& context, const Origin& origin) {
  if (!made_here(origin) || origin.phase == trace::Phase::backward) return Claim::none;
  const Domain* const domain = domain_of(*origin.site);
  if (domain == nullptr || finite_when_wider(*origin.event)) return Claim::none;
  const trace::WitnessTensor* const argument = argument_of(origin);
  if (argument == nullptr) return Claim::none;
  if (output_counts(*origin.event).nan != 0) {
    // A finite argument and NaN: nothing but the domain is left. Written in place, the argument itself is gone.
    if (!argument->looked_at) return argument->finite_before ? Claim::proven : Claim::none;
    return argument->stats.min < domain->least || argument->stats.max > domain->most ? Claim::proven : Claim::none;
  }
  if (!at_the_end(origin, *domain)) return Claim::none;
  return may_be_rounded(context.view(), *argument) ? Claim::plausible : Claim::supported;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const Domain& domain = *domain_of(*origin.site);
  const trace::WitnessTensor& argument = *argument_of(origin);
  const bool outside = counts.nan != 0;
  if (const Cancellation lost = cancellation_before(context.view(), argument, event.step);
      outside && domain.least == 0 && lost.site != nullptr) {
    explain_cancellation(context, origin, lost, finding);
    return;
  }
  const std::string_view base = base_name(origin.site->name);
  finding.title = outside ? std::string(domain.says) : fmt::format("{} at the end of its domain is infinite", base);
  finding.message = fmt::format("{} makes {} of {} results", context.view().describe(origin.site->id),
                                describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)));
  if (argument.looked_at) {
    finding.message += fmt::format("; its argument is {}.", describe_range(argument.stats));
    finding.proof = fmt::format("argument {} · {} of {}", describe_range(argument.stats), describe_bad(counts),
                                count_of(static_cast<std::int64_t>(counts.elements)));
    finding.evidence.emplace_back("smallest", argument.stats.min);
    finding.evidence.emplace_back("largest", argument.stats.max);
    if (!outside) finding.evidence.emplace_back("zeros", static_cast<double>(argument.stats.zero));
  } else {
    finding.message += " from an argument that was finite; it was overwritten in place.";
    finding.proof = fmt::format("{} of {} from finite arguments", describe_bad(counts),
                                count_of(static_cast<std::int64_t>(counts.elements)));
  }
  finding.message +=
      !outside && may_be_rounded(context.view(), argument)
          ? " The argument was computed in low precision, which may have rounded it there."
          : " It is the same in fp32: the formula before it is wrong for these values, not the precision.";
  finding.message += describe_outcome(origin);
  add_scene(origin, finding);
  finding.fix = outside ? "correct the formula that makes the argument; clamping it to the domain only hides the cause"
                        : "torch.log(x + eps), or compute it from logits: F.logsigmoid, F.log_softmax, torch.xlogy";
  finding.fix_cpp =
      outside ? "correct the formula that makes the argument" : "torch::log(x + eps), or torch::log_sigmoid(logits)";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp610;
const Rule rule_amp610 = {
    .code = "AMP610",
    .name = "log-domain",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "a logarithm, root or inverse function is taken outside its domain",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
