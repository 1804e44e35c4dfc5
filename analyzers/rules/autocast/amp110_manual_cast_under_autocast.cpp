#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::Site;

/// Whether a value depends on no parameter: it comes from the data.
bool from_data(const TraceView& view, const Site& cast) {
  const std::vector<bool> reached = view.ancestors(cast.id);
  for (const Site& site : view.trace().sites) {
    if (!reached[static_cast<std::size_t>(site.id)]) continue;
    const bool uses_weight = std::any_of(site.inputs.begin(), site.inputs.end(), [](const trace::TensorType& input) {
      return input.parameter != trace::none || input.requires_grad;
    });
    if (uses_weight) return false;
  }
  return true;
}

/// The parameter that a cast takes: as recorded, or the only one of its module with that shape.
const trace::Parameter* parameter_of(const TraceView& view, const Site& cast) {
  const trace::TensorType& source = *cast_source(cast);
  if (const trace::Parameter* known = view.parameter(source.parameter)) return known;
  const trace::Parameter* found = nullptr;
  for (const trace::Parameter& parameter : view.trace().parameters) {
    if (!cast.has_module || parameter.module != cast.module || parameter.shape != source.shape) continue;
    if (found != nullptr) return nullptr;
    found = &parameter;
  }
  return found;
}

/// The operator under autocast that a value cast by hand goes into and that would have cast it by itself.
const Site* caster(const TraceView& view, const Site& cast) {
  for (const Site* user : users_of(view, cast.id)) {
    if (user->autocast && op_kind(user->name) == OpKind::matmul) return user;
  }
  return nullptr;
}

/// TorchScript writes the casts of autocast into its graphs.
bool is_of_program(const Site& cast) {
  return !base_name(cast.name).starts_with("autocast_to");
}

/// Whether a cast takes its type from another tensor: weight.to(x.dtype), x.type_as(weight). It gives whatever autocast
/// has made of that one, and nothing where autocast is off.
bool follows_tensor(const Site& cast) {
  return cast.api_arguments.contains("dtype_of_tensor") || cast.overload == "other" ||
         base_name(cast.name) == "type_as";
}

bool is_module_cast(const Site& site) {
  return site.api == "Module.half" || site.api == "Module.bfloat16" || site.api == "Module.to";
}

/// Whether an operator works with a weight of a module that was cast as a whole, as a teacher that is not trained: what
/// goes into it has to be given that type as well.
bool has_weight_of_cast_module(const TraceView& view, const Site& user, const Site& cast) {
  const Site* const called = view.outermost_op(user.id);
  const auto& inputs = called != nullptr ? called->inputs : user.inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const trace::TensorType& input) {
    if (input.dtype != cast_result(cast)) return false;
    for (const Site* made = view.site(input.producer); made != nullptr; made = view.parent(*made)) {
      if (is_module_cast(*made)) return true;
    }
    return false;
  });
}

void say(Finding& finding, const TraceView& view, const Site& cast) {
  finding.evidence = {{"from", trace::dtype_name(cast_source(cast)->dtype)},
                      {"to", trace::dtype_name(cast_result(cast))},
                      {"calls", static_cast<double>(view.totals(cast.id).calls)}};
}

void judge_values(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const Site* worst = nullptr;
  const Site* worst_user = nullptr;
  std::int64_t places = 0;
  for (const Site& site : view.trace().sites) {
    if (site.phase != trace::Phase::forward || site.in_recompute || is_module_cast(site)) continue;
    if (!is_of_program(site) || !narrows_by_hand(view, site) || follows_tensor(site)) continue;
    if (!is_weight(view, *cast_source(site)) && !from_data(view, site)) continue;
    const Site* const user = caster(view, site);
    if (user == nullptr || has_weight_of_cast_module(view, *user, site)) continue;
    ++places;
    if (worst == nullptr || view.totals(site.id).calls > view.totals(worst->id).calls) {
      worst = &site;
      worst_user = user;
    }
  }
  if (worst == nullptr) return;
  const bool weight = is_weight(view, *cast_source(*worst));
  const trace::Parameter* const parameter = weight ? parameter_of(view, *worst) : nullptr;
  const char* const dtype = trace::short_dtype_name(cast_result(*worst));
  Finding finding = context.finding();
  finding.title =
      fmt::format("{} are cast to {} by hand although autocast does it", weight ? "weights" : "inputs", dtype);
  finding.culprit = context.culprit(worst->id);
  if (parameter) finding.culprit.parameter = parameter->name;
  finding.steps = steps_of(view, *worst);
  finding.message = fmt::format(
      "{} is cast to {} before {}, which autocast would give {} by itself{}. What autocast keeps in fp32 gets rounded "
      "values too.",
      parameter ? parameter->name
      : weight  ? "A weight"
                : "Data",
      dtype, view.describe(worst_user->id), trace::short_dtype_name(worst_user->autocast_dtype),
      weight ? " once a block, from its cache" : "");
  finding.proof = fmt::format("{} → {} in {}, used by {}", trace::short_dtype_name(cast_source(*worst)->dtype), dtype,
                              plural(places, "place"), view.describe(worst_user->id));
  say(finding, view, *worst);
  finding.evidence.emplace_back("used_by", view.describe(worst_user->id));
  finding.fix = "remove the cast: leave inputs and modules in fp32 and let autocast choose";
  findings.push_back(std::move(finding));
}

void judge_modules(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const Site* cast = nullptr;
  for (const Site& site : view.trace().sites) {
    if (is_module_cast(site) && narrows_by_hand(view, site)) cast = &site;
  }
  if (cast == nullptr) return;
  const trace::DType dtype = cast_result(*cast);
  std::int64_t trained = 0;
  std::string example;
  for (const trace::Parameter& parameter : view.trace().parameters) {
    if (parameter.dtype != dtype || view.gradients(parameter.id).empty()) continue;
    ++trained;
    if (example.empty()) example = parameter.name;
  }
  const bool autocast = std::any_of(view.trace().sites.begin(), view.trace().sites.end(), [](const Site& site) {
    return site.autocast && site.grad_enabled && site.phase == trace::Phase::forward &&
           op_kind(site.name) == OpKind::matmul;
  });
  if (trained == 0 || !autocast) return;
  Finding finding = context.finding();
  finding.title =
      fmt::format("a module that is trained under autocast was cast to {} by hand", trace::short_dtype_name(dtype));
  finding.culprit = context.culprit(cast->id);
  finding.culprit.op = cast->api;
  finding.culprit.parameter = example;
  finding.steps = {0, std::max<std::int64_t>(view.steps() - 1, 0), std::max<std::int64_t>(view.steps(), 1)};
  finding.message = fmt::format(
      "{} (such as {}) are {}: autocast finds them cast already, so its fp32 operators, the weights' updates and their "
      "gradients are {} as well.",
      plural(trained, "trained parameter"), example, trace::short_dtype_name(dtype), trace::short_dtype_name(dtype));
  finding.proof = fmt::format("{} in {}", plural(trained, "trained parameter"), trace::short_dtype_name(dtype));
  say(finding, view, *cast);
  finding.evidence.emplace_back("trained_parameters", static_cast<double>(trained));
  finding.fix = "remove the cast of the module: keep its weights in fp32 and let autocast choose";
  findings.push_back(std::move(finding));
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  judge_values(context, findings);
  judge_modules(context, findings);
}

constexpr std::array needs = {Stream::ops};
constexpr std::array<std::string_view, 4> symptom_of = {"AMP209", "AMP112", "AMP404", "AMP506"};

}  // namespace

extern const Rule rule_amp110;
const Rule rule_amp110 = {
    .code = "AMP110",
    .name = "manual-cast-under-autocast",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "the program casts inputs, weights or modules to half by hand around or inside autocast",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
