#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::Site;

/// Values that went down to half and came back.
struct Trip {
  const Site* down = nullptr;
  const Site* up = nullptr;
  const trace::Parameter* parameter = nullptr;
};

/// The cast to half that a cast back started from.
const Site* way_down(const TraceView& view, const Site& up) {
  const Site* const down = maker_of(view, cast_source(up)->producer);
  return down != nullptr && narrows_by_hand(view, *down) ? down : nullptr;
}

bool is_module_api(const Site& site) {
  return site.api.starts_with("Module.");
}

/// Whether the cast back ends in something that lives on: a parameter or a module's tensor, or what the program keeps
/// and updates in place.
bool lives_on(const TraceView& view, const Site& up, const Site& down, Trip& trip) {
  for (const trace::Parameter& parameter : view.trace().parameters) {
    const Site* const made = view.outermost_op(parameter.made_by);
    if (parameter.replaces != trace::none && made == &up) trip.parameter = &parameter;
  }
  if (trip.parameter != nullptr) return true;
  if (is_module_api(up) && (is_module_api(down) || up.api == "Module.load_state_dict")) return true;
  if (base_name(up.name) != "copy") return false;
  if (const trace::Parameter* target = view.parameter(up.inputs.front().parameter)) {
    trip.parameter = target;
    return true;
  }
  // copy_ into the tensor that the half copy was made of.
  const trace::TensorType* const original = cast_source(down);
  const trace::TensorType& target = up.inputs.front();
  return original->shape == target.shape && original->dtype == target.dtype && original->producer == target.producer &&
         target.producer != trace::none && !target.requires_grad && !up.grad_enabled;
}

/// State that an in-place update goes on with after the cast back (moments of an optimizer, an average of weights).
bool updated_after(const TraceView& view, const Site& up) {
  for (const Site* user : users_of(view, up.id)) {
    const bool in_place = user->name.ends_with("_") && !user->inputs.empty();
    if (!in_place || user->grad_enabled) continue;
    if (const Site* const target = maker_of(view, user->inputs.front().producer); target == &up) return true;
  }
  return false;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  Trip worst;
  std::int64_t trips = 0;
  for (const Site& site : view.trace().sites) {
    if (site.phase == trace::Phase::backward || site.in_recompute || !widens_by_hand(view, site)) continue;
    Trip trip;
    trip.up = &site;
    trip.down = way_down(view, site);
    if (trip.down == nullptr || trip.down->autocast || site.autocast) continue;
    if (!lives_on(view, site, *trip.down, trip) && !updated_after(view, site)) continue;
    trips += std::max<std::int64_t>(view.totals(site.id).calls, 1);
    if (worst.up == nullptr || (worst.parameter == nullptr && trip.parameter != nullptr)) worst = trip;
  }
  if (worst.up == nullptr) return;
  const Site& down = *worst.down;
  const trace::DType half = cast_result(down);
  std::int64_t overflowed = 0;
  for (const Site& site : view.trace().sites) {
    if (view.outermost_op(site.id) == &down) overflowed = std::max(overflowed, view.totals(site.id).nonfinite_calls);
  }
  Finding finding = context.finding();
  if (overflowed > 0) finding.severity = Severity::error;
  const std::string what = worst.parameter != nullptr ? worst.parameter->name
                           : is_module_api(down)      ? "a module's tensors"
                                                      : "kept values";
  finding.title =
      fmt::format("values that the run goes on with are cast to {} and back", trace::short_dtype_name(half));
  finding.culprit = context.culprit(down.id);
  if (!down.api.empty()) finding.culprit.op = down.api;
  if (worst.parameter != nullptr) finding.culprit.parameter = worst.parameter->name;
  finding.steps = steps_of(view, down);
  // Of random fp32 fractions one in 2^13 (fp16) or 2^16 (bf16) needs no rounding: 23 stored bits against 10 or 7.
  const double changed = 1 - std::exp2(half == trace::DType::float16 ? -13 : -16);
  finding.message = fmt::format(
      "{} are cast to {} at {} and back at {}. Of fp32 values with random bits {} are changed by it, by up to {} of "
      "their size{}.",
      what, trace::short_dtype_name(half), view.describe(down.id), view.describe(worst.up->id), share(changed),
      half == trace::DType::float16 ? "2^-11" : "2^-8",
      overflowed > 0 ? fmt::format("; {} gave infinities", plural(overflowed, "cast")) : "");
  finding.proof =
      fmt::format("{} → {} → {}, {}", trace::short_dtype_name(cast_source(down)->dtype), trace::short_dtype_name(half),
                  trace::short_dtype_name(cast_result(*worst.up)), plural(trips, "tensor"));
  finding.evidence = {{"dtype", trace::dtype_name(half)},
                      {"casts_back", static_cast<double>(trips)},
                      {"share_changed_of_random_bits", changed},
                      {"overflowed_casts", static_cast<double>(overflowed)}};
  finding.fix =
      "cast a copy instead: copy.deepcopy(model).half(), or {k: v.half() for k, v in model.state_dict().items()}";
  finding.fix_cpp = "cast a clone instead of the live module";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::ops};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP112"};

}  // namespace

extern const Rule rule_amp115;
const Rule rule_amp115 = {
    .code = "AMP115",
    .name = "half-roundtrip",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "a live module, average or optimizer state is cast to half and back",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
