#include <algorithm>
#include <array>
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
