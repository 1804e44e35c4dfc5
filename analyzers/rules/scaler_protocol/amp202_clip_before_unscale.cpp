#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/exchange.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/core/scalars.h"
#include "analyzers/core/unscaled_operand.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

enum class Clip : unsigned char { none, norm, value, cleaned, added };

/// What a change of gradients does: clipping their norm or their values, putting numbers in the place of infinities
/// that the scaler is to see, adding something that is not scaled (weight decay by hand), or something that works on
/// scaled gradients as well as on unscaled ones (averaging, dividing by a constant).
Clip clip_kind(UnscaledOperands& operands, const trace::Site& site, const GradientState& gradients,
               bool by_own_measure) {
  if (site.api.find("clip_grad_value") != std::string::npos) return Clip::value;
  if (site.api.find("clip_grad") != std::string::npos) return Clip::norm;
  const std::string_view base = base_name(site.name);
  if (base.starts_with("clamp") || base.starts_with("foreach_clamp")) return Clip::value;
  if (base == "nan_to_num") return Clip::cleaned;
  if (operands.added_by(site)) return Clip::added;
  // By hand: a norm is taken, as such or from squares and sums, then all gradients are multiplied by what follows.
  const bool multiplies = base == "mul" || base == "foreach_mul" || base == "div" || base == "foreach_div";
  const bool measured = gradients.norm_read || by_own_measure;
  if (base == "copy" && by_own_measure) return Clip::norm;
  return multiplies && measured && !gradients.scale_read ? Clip::norm : Clip::none;
}

const char* title_of(Clip kind) {
  if (kind == Clip::cleaned) return "non-finite gradients are replaced before the scaler can see them";
  if (kind == Clip::added) return "something that is not scaled is added to gradients that are";
  return "gradients are clipped while they are still scaled";
}

std::optional<double> limit_of(const trace::Site& site, Clip kind) {
  for (const char* name : {"max_norm", "clip_value"}) {
    if (const auto found = site.api_arguments.find(name); found != site.api_arguments.end()) return found->second;
  }
  if (kind != Clip::value) return std::nullopt;
  std::optional<double> largest;  // clamp(-c, c)
  for (const double scalar : site.scalars) {
    if (std::isfinite(scalar)) largest = std::max(largest.value_or(0), std::abs(scalar));
  }
  return largest;
}

/// max_norm * scaler.get_scale() is right: the limit then is of the size that scaled gradients have. A site keeps the
/// limit of its first call.
bool has_size_of_scale(const TraceView& view, const trace::Site& site, double limit) {
  const double scale = view.scale_at(std::max<std::int64_t>(view.totals(site.id).first_step, 0)).value_or(0);
  return scale <= 0 || limit / scale >= 0.01;
}

/// Whether the program multiplies or divides by a scale that it has read, anywhere.
bool uses_scale_as_factor(const TraceView& view) {
  const auto& patterns = view.trace().patterns;
  return std::any_of(patterns.begin(), patterns.end(), [](const trace::StepPattern& pattern) {
    return std::any_of(pattern.events.begin(), pattern.events.end(), [](const trace::ProtocolEvent& event) {
      return event.kind == EventKind::scale_read && (event.flags & event_flag::by_inverse_scale) != 0;
    });
  });
}

struct Case {
  StepSpan steps;
  std::int64_t site = trace::none;
  Clip kind = Clip::none;
  std::set<std::int64_t> norm_sites;  ///< that measured the gradients
  bool in_backward = false;           ///< in a hook, while the backward pass runs
};

/// The case of a site, a new one where there is none.
Case& case_of(std::vector<Case>& cases, std::int64_t site, Clip kind) {
  const auto known = std::find_if(cases.begin(), cases.end(), [&](const Case& found) { return found.site == site; });
  return known != cases.end() ? *known : cases.emplace_back(Case{{}, site, kind, {}, false});
}

struct SeenNorm {
  double seen = 0;
  double scale = 1;
};

/// The norm that clipping saw in the first step in which it was looked at.
std::optional<SeenNorm> seen_norm(const TraceView& view, const Case& found) {
  for (const trace::SeriesPoint* point : view.series("clip_norm")) {
    if (point->nonfinite == point->count) continue;
    if (const auto scale = view.scale_at(point->first_step)) return SeenNorm{point->mean, *scale};
  }
  for (const std::int64_t site : found.norm_sites) {
    for (const trace::SiteNumerics* numerics : view.numerics(site)) {
      const trace::TensorStats& stats = numerics->stats;
      const auto scale = view.scale_at(numerics->step);
      if (!scale || stats.nonfinite() != 0 || stats.absmax == 0 || view.skipped(numerics->step)) continue;
      // A site that took the norm of every gradient and then of these norms holds the total among its results: the
      // squares of all add up to twice that of the largest. One that took only the parts holds the total in the sum.
      const double largest = stats.absmax * stats.absmax;
      const bool has_total = std::abs(stats.sum_squares - 2 * largest) < 1e-4 * largest;
      return SeenNorm{has_total ? stats.absmax : std::sqrt(stats.sum_squares), *scale};
    }
  }
  return std::nullopt;
}

/// Whether an operator that measures what it reads (and not: whether it is finite, which sign it has).
bool takes_size(const trace::Site& site) {
  constexpr std::array<std::string_view, 9> names = {"abs", "pow",  "square", "sum", "mean",
                                                     "max", "amax", "dot",    "mul"};
  return is_norm(site.name) || std::find(names.begin(), names.end(), base_name(site.name)) != names.end();
}

/// Whether a site multiplies by something that follows from one of these reads of gradients.
bool multiplies_by_measure(const TraceView& view, const trace::Site& site, const std::set<std::int64_t>& reads) {
  for (std::size_t i = 1; i < site.inputs.size(); ++i) {
    const std::int64_t made = site.inputs[i].producer;
    if (made == trace::none) continue;
    const std::vector<bool> reached = view.ancestors(made);
    const bool follows = std::any_of(reads.begin(), reads.end(),
                                     [&](std::int64_t read) { return reached[static_cast<std::size_t>(read)]; });
    if (follows) return true;
  }
  return false;
}

/// Follows what a program does with gradients between the backward pass and the scaler.
class Collector {
 public:
  Collector(const TraceView& view, UnscaledOperands& operands)
      : view_(view), operands_(operands), scale_is_factor_(uses_scale_as_factor(view)) {}

  std::vector<Case> collect() {
    walk_protocol(view_, [this](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
      follow(span, event, before);
    });
    return std::move(cases_);
  }

 private:
  void follow(const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    const trace::Site* const site = view_.site(event.site);
    if (event.kind == EventKind::backward) {
      norm_sites_.clear();
      fresh_nonfinite_ = (event.flags & event_flag::fresh_nonfinite) != 0;
      if ((event.flags & event_flag::gradients_only) == 0) results_.clear();
    }
    if (event.kind == EventKind::unscale && (event.flags & event_flag::replaced) != 0) take_results(span, event.object);
    if (site == nullptr) return;
    if (event.kind == EventKind::gradient_read) {
      if (is_norm(site->name)) {
        norm_sites_.insert(site->id);
        norms_.insert(site->id);
      }
      if (takes_size(*site)) reads_.insert(site->id);
      note_result(*site, event, before);
    }
    if (event.kind == EventKind::gradient_write) {
      for (const std::int64_t optimizer : concerned(event, before)) {
        if (clips(*site, event, before.of(optimizer), span) == Clip::none) continue;
        note(span, *site, before.of(optimizer));
        break;
      }
    }
  }

  /// What an operator that changes gradients, or makes new ones of them, does to them while they are scaled.
  Clip clips(const trace::Site& site, const trace::ProtocolEvent& event, const GradientState& gradients,
             const StepSpan& span) {
    if (clips_nothing(site)) return Clip::none;
    // What the program has divided by the scale itself has its true size, whoever divides it again (AMP205).
    if ((event.flags & event_flag::scaled) == 0 || gradients.unscaled || gradients.divided) return Clip::none;
    if ((event.flags & event_flag::by_inverse_scale) != 0) return Clip::none;
    // What comes back from the other processes is a copy of a bucket, and no work of the program.
    if (const trace::Site* const outer = view_.parent(site); outer != nullptr && is_gradient_exchange(*outer))
      return Clip::none;
    const Clip kind = clip_kind(operands_, site, gradients, by_own_measure(site));
    const double scale = view_.scale_at(span.first).value_or(0);
    if (kind == Clip::none || scale == 1) return Clip::none;
    // Harmless as long as there is nothing to hide.
    if (kind == Clip::cleaned && !fresh_nonfinite_) return Clip::none;
    if (kind == Clip::added && gradients.scale_read) return Clip::none;
    const std::optional<double> limit = limit_of(site, kind);
    if (!limit) return gradients.scale_read ? Clip::none : kind;
    return (gradients.scale_read || scale_is_factor_) && has_size_of_scale(view_, site, *limit) ? Clip::none : kind;
  }

  bool by_own_measure(const trace::Site& site) {
    const auto known = by_measure_.find(site.id);
    if (known != by_measure_.end()) return known->second;
    // A copy may hold anything that was made of gradients: only their norm tells a clip.
    const std::set<std::int64_t>& reads = base_name(site.name) == "copy" ? norms_ : reads_;
    return by_measure_.emplace(site.id, multiplies_by_measure(view_, site, reads)).first->second;
  }

  /// An operator has made a new tensor of gradients, which the program may put in their place: p.grad = p.grad * c.
  void note_result(const trace::Site& site, const trace::ProtocolEvent& event, const ProtocolState& before) {
    const std::string_view base = base_name(site.name);
    if (base != "mul" && base != "div" && base != "clamp" && base != "nan_to_num" && !operands_.added_by(site)) return;
    for (const std::int64_t optimizer : concerned(event, before))
      results_[optimizer].push_back({&site, event, before.of(optimizer)});
  }

  /// The scaler has met gradients that no backward pass made as they are.
  void take_results(const StepSpan& span, std::int64_t optimizer) {
    for (const Result& result : results_[optimizer]) {
      if (clips(*result.site, result.event, result.gradients, span) != Clip::none)
        note(span, *result.site, result.gradients);
    }
  }

  void note(const StepSpan& span, const trace::Site& site, const GradientState& gradients) {
    Case& known = case_of(cases_, site.id, clip_kind(operands_, site, gradients, by_own_measure(site)));
    extend(known.steps, span);
    known.norm_sites.insert(norm_sites_.begin(), norm_sites_.end());
  }

  struct Result {
    const trace::Site* site = nullptr;
    trace::ProtocolEvent event;
    GradientState gradients;
  };

  const TraceView& view_;
  UnscaledOperands& operands_;
  bool scale_is_factor_;
  bool fresh_nonfinite_ = false;  ///< the latest backward pass made gradients that are not finite
  std::vector<Case> cases_;
  std::set<std::int64_t> norm_sites_;  ///< of the running step
  // Of all steps: a site tells who made its inputs of its first call alone.
  std::set<std::int64_t> reads_;
  std::set<std::int64_t> norms_;
  std::map<std::int64_t, bool> by_measure_;              ///< by site
  std::map<std::int64_t, std::vector<Result>> results_;  ///< by optimizer, since the last backward pass
};

/// Whether an infinity of the backward pass was on its way to gradients that the scaler then found finite.
bool infinities_vanish(const TraceView& view, const trace::SiteTotals& calls) {
  const auto& events = view.trace().nonfinite_events;
  return std::any_of(events.begin(), events.end(), [&](const trace::NonfiniteEvent& event) {
    const trace::Site* const site = view.site(event.site);
    return site != nullptr && site->phase == trace::Phase::backward && event.step >= calls.first_step &&
           event.step <= calls.last_step && !view.skipped(event.step);
  });
}

/// Whether a call in a hook has put numbers in the place of infinities or NaN.
bool replaces_infinities(const TraceView& view, const trace::Site& site) {
  const std::string_view base = base_name(site.name);
  // The hook gives zeros instead of what it was given; whether it looked at that first does not matter.
  if (base == "zeros_like" || base == "zero" || base == "new_zeros")
    return infinities_vanish(view, view.totals(site.id));
  return std::any_of(view.absorbers().begin(), view.absorbers().end(), [&](const trace::NonfiniteEvent* event) {
    const trace::Site* const inside = view.site(event->site);  // The operator is called through another of its name.
    const trace::Site* const outer = inside != nullptr ? view.parent(*inside) : nullptr;
    return event->site == site.id || (outer != nullptr && outer->id == site.id);
  });
}

/// Whether what a call makes may be the gradient with its infinities replaced.
bool may_replace(std::string_view base) {
  constexpr std::array<std::string_view, 8> names = {"nan_to_num", "where",     "masked_fill", "index_put",
                                                     "zeros_like", "new_zeros", "zero",        "masked_scatter"};
  return base.starts_with("clamp") || std::find(names.begin(), names.end(), base) != names.end();
}

/// Clamps in hooks of tensors, or in the program's own derivatives. No gradient has been unscaled there.
void find_in_backward(const TraceView& view, UnscaledOperands& operands, std::vector<Case>& cases) {
  if (!view.scaled()) return;
  const bool scale_is_factor = uses_scale_as_factor(view);
  for (const trace::Site& site : view.trace().sites) {
    if (site.kind != trace::SiteKind::op || site.phase != trace::Phase::backward || site.in_recompute) continue;
    // The derivative of an operator has no line of its own.
    const std::string_view base = base_name(site.name);
    const bool cleans = may_replace(base) && runs_in_hook(view, site) && replaces_infinities(view, site);
    // The backward of an autograd.Function of the program may work with parameters as it likes.
    const trace::Site* const inside = view.backward_node(site.id);
    const bool adds = !scale_is_factor && (inside == nullptr || is_torch_node(inside->name)) &&
                      runs_in_hook(view, site) && operands.added_by(site);
    if (cleans || adds) {
      const trace::SiteTotals& calls = view.totals(site.id);
      const std::int64_t begin = std::max<std::int64_t>(calls.first_step, 0);
      if (view.scale_at(begin).value_or(1) == 1) continue;
      cases.push_back({{begin, std::max(calls.last_step, begin), std::max<std::int64_t>(calls.steps, 1)},
                       site.id,
                       cleans ? Clip::cleaned : Clip::added,
                       {},
                       true});
      continue;
    }
    if (!base_name(site.name).starts_with("clamp") || !site.source.known()) continue;
    const trace::Site* const node = view.parent(site);
    if (node == nullptr || node->kind != trace::SiteKind::backward_node) continue;
    const std::optional<double> limit = limit_of(site, Clip::value);
    constexpr double end_of_fp16 = 65504;  // whoever clamps to that guards against infinities
    if (!limit || *limit <= 0 || *limit >= end_of_fp16) continue;
    const trace::SiteTotals& totals = view.totals(site.id);
    if (totals.checked_calls > 0 && totals.absmax < 0.999 * *limit) continue;  // it has changed nothing
    const std::int64_t first = std::max<std::int64_t>(totals.first_step, 0);
    const double scale = view.scale_at(first).value_or(1);
    if (scale == 1 || (view.any_event(EventKind::scale_read) && has_size_of_scale(view, site, *limit))) continue;
    const std::int64_t last = std::max(totals.last_step, first);
    cases.push_back({{first, last, std::max<std::int64_t>(totals.steps, 1)}, site.id, Clip::value, {}, true});
  }
}

/// Whether a call divides by this number.
bool divides_by(const trace::Site& site, double number) {
  return std::abs(factor_of(site) * number - 1) < 1e-5;
}

/// The same order with a loss scale of the program's own: a clip, then a division by that scale.
void find_before_own_division(const TraceView& view, double own_scale, UnscaledOperands& operands,
                              std::vector<Case>& cases) {
  std::optional<Case> clipped;
  bool divided = false;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind == EventKind::backward || event.kind == EventKind::optimizer_step) {
      clipped.reset();
      divided = false;
    }
    const trace::Site* const site = view.site(event.site);
    if (event.kind != EventKind::gradient_write || site == nullptr || divided) return;
    if (divides_by(*site, own_scale)) {
      divided = true;
      if (clipped) extend(case_of(cases, clipped->site, clipped->kind).steps, span);
      return;
    }
    for (const std::int64_t optimizer : concerned(event, before)) {
      const Clip kind = clip_kind(operands, *site, before.of(optimizer), false);
      if (kind == Clip::norm || kind == Clip::value) clipped = Case{span, site->id, kind, {}, false};
    }
  });
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const double own_scale = own_loss_scale(view);
  UnscaledOperands operands(view);
  std::vector<Case> cases = unscaling_hook(view) != nullptr ? std::vector<Case>() : Collector(view, operands).collect();
  find_in_backward(view, operands, cases);
  if (own_scale > 0) find_before_own_division(view, own_scale, operands, cases);
  // Zeros may only be what another call of the same line puts in the place of infinities.
  std::stable_partition(cases.begin(), cases.end(), [&](const Case& found) {
    return !found.in_backward || !base_name(view.site(found.site)->name).starts_with("zero");
  });
  std::set<std::string> told;  // one hook runs for many gradients
  for (Case& found : cases) {
    if (found.in_backward && !told.insert(view.place(view.site(found.site)->source)).second) continue;
    const trace::Site& site = *view.site(found.site);
    for (const trace::Site& each : view.trace().sites) {
      if (!site.api.empty() && each.api == site.api && is_norm(each.name)) found.norm_sites.insert(each.id);
    }
    const std::optional<SeenNorm> norm = seen_norm(view, found);
    std::optional<double> scale_there = norm ? std::optional(norm->scale) : view.scale_at(found.steps.first);
    if (!scale_there && own_scale > 0) scale_there = own_scale;
    const std::optional<double> limit = limit_of(site, found.kind);
    const char* const limit_name = found.kind == Clip::value ? "clip_value" : "max_norm";

    Finding finding = context.finding();
    finding.title = title_of(found.kind);
    finding.steps = found.steps;
    finding.culprit = context.culprit(found.site);
    finding.culprit.op = site.api.empty() ? site.name : site.api;
    finding.culprit.phase = trace::Phase::optimizer;
    if (found.in_backward) {  // the line of the hook, not of what it differentiates
      finding.culprit.source = site.source;
      finding.culprit.phase = trace::Phase::backward;
    }
    finding.message =
        fmt::format("Gradients were changed {}: they are still multiplied by the loss scale",
                    found.in_backward ? "in the backward pass" : "between the backward pass and unscale_");
    if (scale_there) {
      finding.message += fmt::format(" of {}", scale(*scale_there));
      finding.evidence.emplace_back("scale", *scale_there);
    }
    finding.message += '.';
    if (norm) {
      const double true_norm = norm->seen / norm->scale;
      finding.evidence.emplace_back("norm_seen", norm->seen);
      finding.evidence.emplace_back("true_norm", true_norm);
      finding.proof = fmt::format("norm seen {} · true norm {}", number(norm->seen), number(true_norm));
      finding.message +=
          fmt::format(" Clipping saw a norm of {}, the true one is {}.", number(norm->seen), number(true_norm));
    }
    if (limit) {
      finding.evidence.emplace_back(limit_name, *limit);
      if (scale_there && *scale_there > 0) {
        const double effective = *limit / *scale_there;
        finding.evidence.emplace_back(fmt::format("effective_{}", limit_name), effective);
        finding.proof += fmt::format("{}{} {} acts like {}", finding.proof.empty() ? "" : " · ", limit_name,
                                     number(*limit), number(effective));
        finding.message += fmt::format(" {} = {} acts like {}, and changes with the loss scale.", limit_name,
                                       number(*limit), number(effective));
      }
    }
    if (finding.proof.empty()) finding.proof = "gradients changed between backward and unscale_";
    if (found.kind == Clip::cleaned) {
      finding.message += " The scaler finds no infinity then, so that it neither skips the step nor lowers the scale.";
      finding.proof = fmt::format("non-finite gradients replaced in {}{}", found.in_backward ? "some of " : "",
                                  plural(found.steps.count, "step"));
      finding.fix = "leave infinities to the scaler, or clean gradients after scaler.unscale_(optimizer)";
      findings.push_back(std::move(finding));
      continue;
    }
    if (found.kind == Clip::added) {
      finding.message += " What is added is not, so that it comes out too small by that factor.";
      if (scale_there) finding.proof = fmt::format("added {} times too small", scale(*scale_there));
      finding.fix = "scaler.unscale_(optimizer)   before it, or weight_decay= of the optimizer";
      findings.push_back(std::move(finding));
      continue;
    }
    finding.fix = found.in_backward
                      ? "clip after scaler.unscale_(optimizer), not in a hook; or let the hook multiply its "
                        "limit by scaler.get_scale()"
                  : own_scale > 0 ? "divide the gradients by the loss scale before the clip"
                                  : "scaler.unscale_(optimizer)   before the clip";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp202;
const Rule rule_amp202 = {
    .code = "AMP202",
    .name = "clip-before-unscale",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "gradients are clipped between backward and unscale",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
