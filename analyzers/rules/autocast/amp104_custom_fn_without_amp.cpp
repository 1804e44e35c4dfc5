#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::DType;
using trace::Site;

/// What is known of one autograd.Function of the program.
struct Function {
  const Site* range = nullptr;  ///< its forward
  const Site* mixed = nullptr;  ///< an operator inside that was given half and full precision together
  bool failed = false;          ///< … and refused them
  bool autocast = false;        ///< called under autocast
  bool decorated = false;       ///< custom_fwd or custom_bwd
  DType half = DType::unknown;
  StepSpan steps;
};

/// The range or node of an autograd.Function around a site; null outside one.
const Site* function_around(const TraceView& view, const Site& site) {
  for (const Site* outer = view.parent(site); outer != nullptr; outer = view.parent(*outer)) {
    if (outer->kind == trace::SiteKind::range && outer->name.find(':') == std::string::npos &&
        outer->name.find('#') == std::string::npos && outer->name.find(' ') == std::string::npos) {
      return outer;
    }
    if (outer->kind == trace::SiteKind::backward_node) return outer;
  }
  return nullptr;
}

/// Functions of torch's own that run whole modules or compiled code: what is inside is not a function's arithmetic.
bool runs_modules(const std::string& name) {
  return name.starts_with("Checkpoint") || name.starts_with("Compiled") || name.starts_with("GraphExec") ||
         name.starts_with('_');
}

std::string class_of(const Site& function) {
  const std::string& name = function.name;
  const bool node = function.kind == trace::SiteKind::backward_node && name.ends_with("Backward");
  return node ? name.substr(0, name.size() - 8) : name;
}

bool many(const trace::TensorType& tensor) {
  return std::any_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t size) { return size > 1; });
}

/// Half and fp32 tensors as arguments of one operator. Autocast's own operators cast them, and a copy is meant to.
bool mixes(const TraceView& view, const Site& site, DType& half) {
  if (site.kind != trace::SiteKind::op || op_kind(site.name) == OpKind::cast) return false;
  if (site.autocast && view.outermost_op(site.id) == &site &&
      (op_kind(site.name) == OpKind::matmul || op_kind(site.name) == OpKind::loss)) {
    return false;
  }
  bool full = false;
  half = DType::unknown;
  for (const trace::TensorType& input : site.inputs) {
    if (!many(input)) continue;
    full = full || input.dtype == DType::float32;
    if (trace::is_half(input.dtype)) half = input.dtype;
  }
  return full && half != DType::unknown;
}

/// Whether a function is given what autocast has made, outside of its block.
bool given_half_of_autocast(const TraceView& view, const Site& range) {
  return std::any_of(range.inputs.begin(), range.inputs.end(), [&](const trace::TensorType& input) {
    const Site* const made = trace::is_half(input.dtype) ? maker_of(view, input.producer) : nullptr;
    return made != nullptr && made->autocast;
  });
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  std::map<std::string, Function> functions;
  for (const Site& site : view.trace().sites) {
    const bool range = site.kind == trace::SiteKind::range && site.phase == trace::Phase::forward;
    if (range && function_around(view, site) == nullptr) {
      Function& function = functions[site.name];
      if (function.range == nullptr) function.range = &site;
      function.autocast = function.autocast || site.autocast;
    }
  }
  for (const Site& site : view.trace().sites) {
    const Site* const around = function_around(view, site);
    if (around == nullptr) continue;
    const auto found = functions.find(class_of(*around));
    if (found == functions.end() || site.in_recompute || runs_modules(found->first)) continue;
    Function& function = found->second;
    // A module inside: the function is a wrapper around a part of the model.
    if (site.phase == trace::Phase::forward && site.has_module && site.module != function.range->module) continue;
    function.decorated = function.decorated || site.api == "custom_fwd" || site.api == "custom_bwd";
    DType half = DType::unknown;
    if (!mixes(view, site, half)) continue;
    const bool failed = view.totals(site.id).failed_calls > 0;
    // Of a failed operator the innermost says why; of others the one that the program wrote is named.
    if (function.mixed != nullptr && (function.failed || !failed)) continue;
    function.mixed = view.outermost_op(site.id);
    function.failed = failed;
    function.half = half;
    function.steps = steps_of(view, *function.mixed);
  }
  for (const auto& [name, function] : functions) {
    if (function.decorated || function.mixed == nullptr) continue;
    if (!function.autocast && !(function.failed && given_half_of_autocast(view, *function.range))) continue;
    const Site& site = *function.mixed;
    Finding finding = context.finding();
    if (function.failed) finding.severity = Severity::error;
    finding.title = fmt::format("the autograd function {} is not made for autocast: it {} {} and fp32 tensors", name,
                                function.failed ? "fails on" : "mixes", trace::short_dtype_name(function.half));
    finding.culprit = context.culprit(site.id);
    if (site.source.known()) finding.culprit.source = site.source;
    finding.steps = function.steps;
    std::string inputs;
    for (const trace::TensorType& input : site.inputs)
      inputs += (inputs.empty() ? "" : ", ") + tensor_words(input);
    const bool backward = site.phase == trace::Phase::backward;
    finding.message = fmt::format(
        "{} {} without custom_fwd and custom_bwd. In its {} {} is given {}{}.", name,
        function.autocast ? "runs under autocast" : "takes what autocast has made", backward ? "backward" : "forward",
        site.name, inputs,
        function.failed ? " and fails" : "; autocast does not know the function, so nothing brings them to one dtype");
    finding.proof =
        fmt::format("{}.{}: {} of {}", name, backward ? "backward" : "forward", base_name(site.name), inputs);
    finding.evidence = {{"function", name},
                        {"op", site.name},
                        {"half", trace::dtype_name(function.half)},
                        {"inputs", inputs},
                        {"failed", function.failed ? 1.0 : 0.0}};
    finding.fix =
        "decorate forward with @torch.amp.custom_fwd(device_type=…, cast_inputs=torch.float32) and backward with "
        "@torch.amp.custom_bwd(device_type=…)";
    finding.fix_cpp = "cast the inputs to one dtype at the start of forward, and turn autocast off inside";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::ops};

}  // namespace

extern const Rule rule_amp104;
const Rule rule_amp104 = {
    .code = "AMP104",
    .name = "custom-fn-without-amp",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "a custom autograd Function under autocast mixes dtypes, or fails on them",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
