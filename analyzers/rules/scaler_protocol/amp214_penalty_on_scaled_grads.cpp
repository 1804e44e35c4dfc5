#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

/// Whether a site multiplies by the inverse of the scale, or divides by something that may be the scale.
bool unscales(const trace::Site& site, double factor) {
  const std::string_view base = base_name(site.name);
  const bool multiplies = base == "mul" || base == "foreach_mul";
  const bool divides = base == "div" || base == "foreach_div";
  if (!multiplies && !divides) return false;
  for (const double scalar : site.scalars) {
    const double by = divides ? 1 / scalar : scalar;
    // The scale may have been another one when the site was first seen.
    if (by > 0 && std::abs(std::log2(by * factor)) < 40 && by < 0.5) return true;
  }
  // A scalar tensor: the scale itself, or its inverse.
  return site.inputs.size() > 1 && site.inputs[1].shape.empty() && !site.inputs[1].requires_grad;
}

class Tracer {
 public:
  Tracer(const TraceView& view, double factor)
      : view_(view), factor_(factor), seen_(view.trace().sites.size(), false), loss_(view.trace().sites.size(), false) {
    for (const std::int64_t site : view.loss_sites()) {
      const std::vector<bool> ancestors = view.ancestors(site);
      for (std::size_t i = 0; i < ancestors.size(); ++i)
        loss_[i] = loss_[i] || ancestors[i];
    }
  }

  /// First forward site that uses a result of autograd.grad with its scale and hands it on to a loss.
  std::optional<std::int64_t> find() {
    for (const trace::Site& site : view_.trace().sites) {
      if (!forward(site)) continue;
      for (const trace::TensorType& input : site.inputs) {
        // What a penalty is made of takes part in autograd. Other tensors may lie where a gradient was.
        if (!input.requires_grad || input.parameter != trace::none) continue;
        const trace::Site* const maker = view_.site(input.producer);
        if (maker == nullptr || maker->phase != trace::Phase::backward) continue;
        if (reaches_loss(site.id)) return site.id;
      }
    }
    return std::nullopt;
  }

 private:
  static bool forward(const trace::Site& site) {
    return site.phase == trace::Phase::forward && !site.in_recompute && site.kind == trace::SiteKind::op;
  }

  bool reaches_loss(std::int64_t start) {
    std::vector<std::int64_t> open = {start};
    while (!open.empty()) {
      const std::int64_t id = open.back();
      open.pop_back();
      if (seen_[static_cast<std::size_t>(id)]) continue;
      seen_[static_cast<std::size_t>(id)] = true;
      const trace::Site& site = *view_.site(id);
      if (!forward(site) || unscales(site, factor_)) continue;
      const OpKind kind = op_kind(site.name);
      if (kind != OpKind::move && kind != OpKind::cast && loss_[static_cast<std::size_t>(id)]) return true;
      for (const std::int64_t next : view_.consumers(id))
        open.push_back(next);
    }
    return false;
  }

  const TraceView& view_;
  double factor_;
  std::vector<bool> seen_;
  std::vector<bool> loss_;  ///< sites that some loss depends on
};

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  StepSpan steps;
  std::int64_t grad_site = trace::none;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    constexpr std::uint32_t wanted = event_flag::gradients_only | event_flag::scaled | event_flag::create_graph;
    if (event.kind != EventKind::backward || (event.flags & wanted) != wanted) return;
    if (grad_site == trace::none) grad_site = event.site;
    extend(steps, span);
  });
  if (steps.count == 0 || !view.has_producers()) return;
  const double factor = view.scale_at(steps.first).value_or(1);
  if (factor == 1) return;
  const auto use = Tracer(view, factor).find();
  if (!use) return;
  Finding finding = context.finding();
  finding.culprit = context.culprit(*use);
  finding.culprit.phase = trace::Phase::forward;
  finding.steps = steps;
  finding.title = "a penalty is computed from gradients that are still scaled";
  finding.message = fmt::format(
      "autograd.grad of the scaled output at {} gives gradients {} times too large, and they go into the loss as they "
      "are; "
      "the loss is then scaled once more.",
      view.place(view.source_of(grad_site)), scale(factor));
  finding.proof = fmt::format("gradients times {} in the loss · squared {}", scale(factor), scale(factor * factor));
  finding.evidence = {{"factor", factor}, {"autograd_grad", view.place(view.source_of(grad_site))}};
  finding.fix =
      "inv_scale = 1.0 / scaler.get_scale(); gradients = [g * inv_scale for g in gradients]   before the penalty";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp214;
const Rule rule_amp214 = {
    .code = "AMP214",
    .name = "penalty-on-scaled-grads",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "gradients of a scaled output feed a loss without being unscaled",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
