#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/gradient_loss.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;

bool multiplies(const trace::Site* site) {
  if (site == nullptr || site->api.find("clip") != std::string::npos) return false;
  const std::string_view base = base_name(site->name);
  return base == "mul" || base == "div" || base == "foreach_mul" || base == "foreach_div";
}

/// Whether gradients flow through a forward pass in fp16. A backward pass that alone runs again in fp16 has another
/// fault (AMP105), and validation alone has no gradients to lose. Autocast casts weights with gradients switched on
/// even there, so it is the program's own call that counts.
bool differentiates_fp16(const TraceView& view) {
  if (!view.autocast_used(trace::DType::float16)) return false;
  return std::any_of(view.trace().sites.begin(), view.trace().sites.end(), [&](const trace::Site& site) {
    if (site.kind != trace::SiteKind::op || site.in_recompute || site.phase == trace::Phase::backward ||
        site.compute_dtype != trace::DType::float16 || op_kind(site.name) != OpKind::matmul)
      return false;
    const trace::Site* const called = view.outermost_op(site.id);
    return called != nullptr && called->autocast && called->grad_enabled;
  });
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  if (!differentiates_fp16(view) || view.scaled() || view.any_event(trace::EventKind::scale_loss)) return;
  StepSpan steps;
  std::int64_t loss_site = trace::none;
  bool trains = false;
  // A loss scale of the program's own. It may as well be part of the learning rate.
  bool unscales_by_hand = unscaling_hook(view) != nullptr || own_loss_scale(view) > 0;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    switch (event.kind) {
      case trace::EventKind::backward:
        if ((event.flags & event_flag::gradients_only) != 0) break;
        if (loss_site == trace::none) loss_site = event.site;
        extend(steps, span);
        break;
      case trace::EventKind::optimizer_step:
      case trace::EventKind::parameter_write:
        trains = true;
        break;
      case trace::EventKind::gradient_write:
        // A home-made loss scale divides its gradients between backward and step; clipping measures them first.
        for (const std::int64_t optimizer : concerned(event, before)) {
          if (multiplies(view.site(event.site)) && !before.of(optimizer).norm_read) unscales_by_hand = true;
        }
        break;
      default:
        break;
    }
  });
  if (steps.count == 0 || !trains || unscales_by_hand) return;

  const double notable = context.parameter("lost_share");
  const GradientLoss loss = measure_gradient_loss(view, notable);
  const bool lost = loss.share >= notable;
  Finding finding = context.finding();
  finding.severity = lost ? Severity::error : Severity::warning;
  finding.steps = steps;
  finding.culprit = context.culprit(loss_site);
  finding.culprit.op = "backward";
  finding.culprit.phase = trace::Phase::scaler;
  finding.evidence = {{"gradient_share_lost", loss.share},
                      {"parameters_lost_entirely", static_cast<double>(loss.all_zero)}};
  if (lost) {
    finding.title = "fp16 autocast trains without a loss scale, and gradients are flushed to zero";
    finding.message =
        fmt::format("About {} of all gradient elements became zero in fp16 that fp32 would keep", share(loss.share));
    if (loss.all_zero > 0) finding.message += fmt::format(", {} entirely", plural(loss.all_zero, "parameter"));
    finding.message += '.';
    finding.proof = fmt::format("{} of gradients flushed to zero", share(loss.share));
    if (loss.all_zero > 0)
      finding.proof += fmt::format(" · {} of {} parameters entirely", loss.all_zero, view.trace().parameters.size());
    if (loss.better_scale) {
      finding.evidence.emplace_back("scale_that_saves_them", *loss.better_scale);
      finding.message += fmt::format(" A loss scale of {} {}.", scale(*loss.better_scale),
                                     loss.better_scale_keeps_all ? "would save them" : "is the largest that fits");
      finding.proof += fmt::format(" · scale {} {}", scale(*loss.better_scale),
                                   loss.better_scale_keeps_all ? "would save them" : "would save most");
    }
  } else {
    finding.title = "fp16 autocast trains without a loss scale";
    finding.message =
        "Gradients below 2^-24 become zero in fp16. No notable share was lost so far, but gradients get smaller as "
        "training goes on.";
    finding.proof = loss.elements > 0 ? fmt::format("{} of gradients flushed to zero so far", share(loss.share))
                                      : "gradients were not looked at";
  }
  finding.fix =
      "scaler = torch.amp.GradScaler(device); scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update() — "
      "or "
      "autocast to bfloat16";
  finding.fix_cpp = "train through ampscope::executor::GradScaler, or autocast to torch::kBFloat16";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol, Stream::ops, Stream::gradients};
constexpr std::array parameters = {ParameterSpec{"lost_share", 0.01, 0.0001, 1, false,
                                                 "share of gradient elements flushed to zero that makes it an error"}};

}  // namespace

extern const Rule rule_amp201;
const Rule rule_amp201 = {
    .code = "AMP201",
    .name = "missing-scaler",
    .family = Family::scaler_protocol,
    .severity = Severity::warning,
    .summary = "fp16 autocast trains without a scaler",
    .needs = needs,
    .parameters = parameters,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
