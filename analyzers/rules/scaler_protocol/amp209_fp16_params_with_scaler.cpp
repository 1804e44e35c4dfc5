#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

/// Whether gradients that a call unscales may be those of fp16 parameters: where tensors of the call are known, one is
/// fp16. Sharded training gathers weights in fp16 for the pass alone; what the optimizer owns, and its gradients, are
/// fp32.
bool may_be_half(const TraceView& view, std::int64_t id) {
  const trace::Site* const site = view.site(id);
  if (site == nullptr) return true;
  // The step of an optimizer is a range, and its kernel inside it takes the tensors.
  std::vector<const trace::Site*> calls{site};
  for (const std::int64_t child : view.children(id)) {
    const trace::Site* const inner = view.site(child);
    if (inner->name.find("fused") != std::string::npos) calls.push_back(inner);
  }
  bool known = false;
  for (const trace::Site* call : calls) {
    for (const trace::TensorType& input : call->inputs) {
      if (input.dtype == trace::DType::float16) return true;
      known = known || input.dtype != trace::DType::unknown;
    }
  }
  return !known;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const Refusal refusal = first_refusal(view, RefusalCause::half_gradients);
  StepSpan steps = refusal.steps;
  std::int64_t site = refusal.site;
  std::set<std::int64_t> through;  // optimizers that the scaler serves
  if (refusal.steps.count > 0) through.insert(refusal.optimizer);
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    const bool fused = event.kind == EventKind::optimizer_step && (event.flags & event_flag::fused) != 0 &&
                       (event.flags & event_flag::through_scaler) != 0;
    if (event.kind != EventKind::unscale && !fused) return;
    const bool half = std::any_of(
        view.trace().parameters.begin(), view.trace().parameters.end(), [&](const trace::Parameter& parameter) {
          return parameter.dtype == trace::DType::float16 && parameter.optimizer == event.object;
        });
    if (!half || !may_be_half(view, event.site)) return;
    through.insert(event.object);
    if (site == trace::none) site = event.site;
    if (refusal.steps.count == 0) extend(steps, span);
  });
  if (through.empty()) return;

  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::string names;
  const trace::Parameter* first = nullptr;
  for (const trace::Parameter& parameter : view.trace().parameters) {
    // An optimizer that was refused before it was ever seen at work is not known to own anything.
    const bool owned = through.contains(parameter.optimizer) || parameter.optimizer == trace::none;
    if (parameter.dtype != trace::DType::float16 || !owned) continue;
    if (first == nullptr) first = &parameter;
    if (tensors < 4) names += fmt::format("{}{}", names.empty() ? "" : ", ", parameter.name);
    ++tensors;
    elements += parameter.count;
  }
  if (tensors > 4) names += ", …";
  const bool raised = refusal.steps.count > 0;
  Finding finding = context.finding();
  finding.culprit = context.culprit(site);
  finding.culprit.op = "GradScaler.unscale_";
  finding.culprit.phase = trace::Phase::scaler;
  if (first != nullptr) finding.culprit.parameter = first->name;
  finding.steps = steps;
  finding.title = "trainable parameters are stored in fp16";
  finding.message = fmt::format(
      "{} given to {} in fp16 ({}), so {} gradients are fp16 too: they overflow before they can be unscaled, and small "
      "updates to fp16 weights are lost.{}",
      tensors == 1 ? std::string("1 parameter was") : fmt::format("{} parameters were", count_of(tensors)),
      optimizer_name(view, *through.begin()), names, tensors == 1 ? "its" : "their",
      raised ? " The scaler refused to unscale them." : "");
  finding.proof = fmt::format("{} in fp16: {}", plural(tensors, "trainable parameter"), names);
  finding.evidence = {{"parameters", static_cast<double>(tensors)},
                      {"elements", static_cast<double>(elements)},
                      {"names", names},
                      {"raised", raised ? 1.0 : 0.0}};
  if (const std::string words = last_words(view); raised && !words.empty())
    finding.evidence.emplace_back("exception", words);
  finding.fix =
      "keep trainable parameters in fp32 (no model.half(), or adapter.float()) and let autocast do the rest; only "
      "frozen "
      "weights may be fp16";
  finding.fix_cpp = "keep trainable parameters in torch::kFloat32 and let autocast do the rest";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp209;
const Rule rule_amp209 = {
    .code = "AMP209",
    .name = "fp16-params-with-scaler",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "trainable parameters are stored in fp16 and trained through a scaler",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
