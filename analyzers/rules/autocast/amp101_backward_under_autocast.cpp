#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::DType;

struct ChangedOps {
  std::int64_t cast = 0;     ///< backward operators that autocast gave another dtype than their forward operator had
  std::int64_t wrapped = 0;  ///< backward operators that autocast looked at at all
  std::int64_t site = trace::none;  ///< the most frequent of those that were cast
  DType forward = DType::unknown;
  DType backward = DType::unknown;
};

ChangedOps changed_ops(const TraceView& view) {
  ChangedOps changed;
  std::int64_t most_calls = -1;
  for (const trace::Site& site : view.trace().sites) {
    const bool backward =
        site.phase == trace::Phase::backward && site.kind == trace::SiteKind::op && !site.in_recompute;
    if (!backward || !site.autocast || !trace::is_floating(site.compute_dtype)) continue;
    ++changed.wrapped;
    const trace::Site* const forward = view.forward_of(site.id);
    if (forward == nullptr || !trace::is_floating(forward->compute_dtype)) continue;
    if (forward->compute_dtype == site.compute_dtype) continue;
    ++changed.cast;
    if (const std::int64_t calls = view.totals(site.id).calls; calls > most_calls) {
      most_calls = calls;
      changed.site = site.id;
      changed.forward = forward->compute_dtype;
      changed.backward = site.compute_dtype;
    }
  }
  return changed;
}

bool is_lightning(const std::string& file) {
  return file.find("lightning/pytorch/") != std::string::npos || file.find("pytorch_lightning/") != std::string::npos;
}

/// Lightning runs all of training_step under autocast, so that manual optimization has its backward pass there whatever
/// the program does: worth a note at the program's own line.
void tell_of_lightning(const trace::Site& node, Finding& finding) {
  finding.severity = Severity::info;
  finding.title = "Lightning runs manual_backward under autocast";
  const auto own = std::find_if(node.stack.begin(), node.stack.end(),
                                [](const trace::SourceLine& line) { return !is_lightning(line.file); });
  if (own != node.stack.end()) finding.culprit.source = *own;
  finding.fix = "with torch.autocast(device_type, enabled=False): self.manual_backward(loss)";
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  StepSpan steps;
  std::int64_t site = trace::none;
  bool whole = false;  // a backward() that fills .grad, as opposed to autograd.grad
  DType dtype = DType::unknown;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    if (event.kind != trace::EventKind::backward || (event.flags & event_flag::autocast) == 0) return;
    const bool half = (event.flags & (event_flag::autocast_float16 | event_flag::autocast_bfloat16)) != 0;
    if (!half) return;
    dtype = (event.flags & event_flag::autocast_float16) != 0 ? DType::float16 : DType::bfloat16;
    if (site == trace::none) site = event.site;
    whole = whole || (event.flags & event_flag::gradients_only) == 0;
    extend(steps, span);
  });
  if (steps.count == 0) return;

  const ChangedOps changed = changed_ops(view);
  Finding finding = context.finding();
  // autograd.grad inside the block concerns a penalty, not every gradient of the run.
  if (!whole) finding.severity = Severity::warning;
  finding.title = "the backward pass runs under autocast";
  finding.steps = steps;
  finding.culprit.op = whole ? "backward" : "autograd.grad";
  finding.culprit.phase = trace::Phase::backward;
  // The line of the call is that of the nodes it runs; the loss itself was made elsewhere.
  const trace::Site* node = nullptr;
  for (const trace::Site& each : view.trace().sites) {
    if (each.kind == trace::SiteKind::backward_node && each.source.known()) {
      finding.culprit.source = each.source;
      node = &each;
      break;
    }
  }
  if (!finding.culprit.source && view.source_of(site).known()) finding.culprit.source = view.source_of(site);
  finding.culprit.site = site;
  finding.message = fmt::format(
      "{} was called while {} autocast was on, so autocast casts the operators of the backward pass once more.",
      *finding.culprit.op, trace::short_dtype_name(dtype));
  if (changed.cast > 0) {
    finding.message += fmt::format(
        " {} computed in another dtype than their forward operators did, such as {}: {} forward, {} backward.",
        changed.cast == 1 ? "1 backward operator" : fmt::format("{} backward operators", changed.cast),
        view.describe(changed.site), trace::short_dtype_name(changed.forward),
        trace::short_dtype_name(changed.backward));
  }
  finding.proof =
      fmt::format("{} autocast on in backward · {} of {} backward ops changed dtype", trace::short_dtype_name(dtype),
                  count_of(changed.cast), count_of(std::max(changed.wrapped, changed.cast)));
  finding.evidence = {{"autocast_dtype", trace::dtype_name(dtype)},
                      {"backward_ops_under_autocast", static_cast<double>(changed.wrapped)},
                      {"ops_with_changed_dtype", static_cast<double>(changed.cast)}};
  if (changed.cast > 0) {
    finding.evidence.emplace_back("example", view.describe(changed.site));
    finding.evidence.emplace_back("forward_dtype", trace::dtype_name(changed.forward));
    finding.evidence.emplace_back("backward_dtype", trace::dtype_name(changed.backward));
  }
  finding.fix = "end the autocast block before loss.backward(): only forward and loss belong inside it";
  finding.fix_cpp = "let the autocast guard go out of scope before loss.backward()";
  if (node != nullptr && is_lightning(node->source.file)) tell_of_lightning(*node, finding);
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp101;
const Rule rule_amp101 = {
    .code = "AMP101",
    .name = "backward-under-autocast",
    .family = Family::autocast,
    .severity = Severity::error,
    .summary = "backward was called while autocast was on",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
