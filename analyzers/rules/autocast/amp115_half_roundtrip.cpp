#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

/// All round trips between the same two places.
struct Route {
  std::int64_t down = trace::none;
  std::int64_t up = trace::none;
  std::int64_t parameter = trace::none;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t compared = 0;
  std::int64_t changed = 0;
  std::int64_t overflowed = 0;
  std::int64_t vanished = 0;
  std::set<std::int64_t> steps;

  void add(const trace::RoundTrip& trip) {
    down = trip.down;
    up = trip.up;
    if (parameter == trace::none) parameter = trip.parameter;
    ++tensors;
    elements += trip.elements;
    compared += trip.compared;
    changed += trip.changed;
    overflowed += trip.overflowed;
    vanished += trip.vanished;
    steps.insert(trip.step);
  }
};

std::string effects(const Route& route) {
  if (route.compared == 0) return "their values could not be looked at";
  std::string words = fmt::format("{} of {} were changed",
                                  share(static_cast<double>(route.changed) / static_cast<double>(route.compared)),
                                  plural(route.compared, "value"));
  if (route.overflowed > 0) words += fmt::format(", {} became infinite", number(static_cast<double>(route.overflowed)));
  if (route.vanished > 0) words += fmt::format(", {} became zero", number(static_cast<double>(route.vanished)));
  return words;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  std::map<std::pair<std::int64_t, std::int64_t>, Route> routes;
  for (const trace::RoundTrip& trip : view.trace().round_trips) {
    // What is rounded after the last step is not trained on: a copy of the result.
    if (trip.step < view.steps()) routes[{trip.down, trip.up}].add(trip);
  }
  for (const auto& [ends, route] : routes) {
    const trace::Site* const down = view.site(route.down);
    // Values that fp16 or bf16 hold anyway lose nothing.
    if (down == nullptr || (route.compared > 0 && route.changed == 0)) continue;
    const trace::Parameter* const parameter = view.parameter(route.parameter);
    const char* const dtype = trace::short_dtype_name(cast_result(*down));
    Finding finding = context.finding();
    if (route.overflowed > 0) finding.severity = Severity::error;
    finding.title = fmt::format("{} that the run goes on with are cast to {} and back",
                                parameter != nullptr ? "weights" : "kept values", dtype);
    finding.culprit = context.culprit(route.down);
    if (!down->api.empty()) finding.culprit.op = down->api;
    if (parameter != nullptr) finding.culprit.parameter = parameter->name;
    const auto steps = static_cast<std::int64_t>(route.steps.size());
    finding.steps = {*route.steps.begin(), *route.steps.rbegin(), steps};
    finding.message = fmt::format("{}{} went to {} at {} and came back to where they are kept at {}: {}.",
                                  plural(route.tensors, "tensor"),
                                  parameter != nullptr ? fmt::format(" (such as {})", parameter->name) : "", dtype,
                                  view.describe(route.down), view.describe(route.up), effects(route));
    finding.proof = fmt::format("{} · {}", plural(route.tensors, "tensor"), effects(route));
    finding.evidence = {
        {"dtype", trace::dtype_name(cast_result(*down))},  {"tensors", static_cast<double>(route.tensors)},
        {"elements", static_cast<double>(route.elements)}, {"compared", static_cast<double>(route.compared)},
        {"changed", static_cast<double>(route.changed)},   {"overflowed", static_cast<double>(route.overflowed)},
        {"vanished", static_cast<double>(route.vanished)}};
    finding.fix = parameter != nullptr
                      ? "cast a copy instead: copy.deepcopy(model).half(), or {k: v.half() for k, v in "
                        "model.state_dict().items()}"
                      : "keep these values in fp32; cast a copy where half is enough";
    finding.fix_cpp = "cast a clone instead of what is trained: parameter.detach().to(torch::kHalf)";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP112"};

}  // namespace

extern const Rule rule_amp115;
const Rule rule_amp115 = {
    .code = "AMP115",
    .name = "half-roundtrip",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "weights, an average or an optimizer's state are cast to half and put back",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
