#include "analyzers/core/protocol.h"

#include <algorithm>
#include <cmath>

#include "analyzers/core/op_kinds.h"
#include "analyzers/core/scalars.h"

namespace ampscope::analyzers {

using trace::EventKind;
using trace::ProtocolEvent;
namespace event_flag = trace::event_flag;

namespace {

bool valid(std::int64_t optimizer) noexcept {
  return optimizer >= 0 && optimizer < 64;
}

template <typename Change>
void for_objects(ProtocolState& state, std::int64_t object, Change change) {
  if (valid(object)) {
    change(state.optimizers[static_cast<std::size_t>(object)]);
  } else {
    for (GradientState& gradients : state.optimizers) {
      if (gradients.present) change(gradients);
    }
  }
}

/// The first half of a norm that is written out: the squares of all elements.
bool squares(std::string_view name) {
  const std::string_view base = base_name(name);
  return base == "square" || base == "pow" || base == "foreach_pow";
}

void note_outcome(const TraceView& view, ProtocolState& state, std::int64_t optimizer, bool stepped) {
  for (std::size_t i = 0; i < state.schedules.size(); ++i) {
    const trace::Schedule* const schedule = view.schedule(static_cast<std::int64_t>(i));
    if (schedule->optimizer != trace::none && valid(optimizer) && schedule->optimizer != optimizer) continue;
    (stepped ? state.schedules[i].stepped : state.schedules[i].skipped) = true;
  }
}

/// A backward pass has reached the gradients of an optimizer: they are new, or added to those that were there.
void add_pass(const ProtocolEvent& event, std::size_t optimizer, bool certain, GradientState& gradients) {
  const bool names_optimizers = event.optimizers != 0;
  const bool added =
      (event.flags & event_flag::added) != 0 && (!names_optimizers || (event.added >> optimizer & 1U) != 0);
  const GradientState old = added && gradients.present ? gradients : GradientState{};
  gradients = {};
  gradients.present = true;
  gradients.certain = certain;
  gradients.scaled = (event.flags & event_flag::scaled) != 0;
  const bool given = (event.flags & event_flag::given_gradient) != 0;
  gradients.plain = old.plain || (!gradients.scaled && !given);
  gradients.any_scaled = old.any_scaled || gradients.scaled;
  gradients.mixed = old.mixed || ((old.unscaled || old.divided) && !old.used);
  gradients.across_update = old.across_update || (old.updated && !old.used);
  gradients.used = old.used;
  gradients.inside_step = (event.flags & event_flag::inside_step) != 0;
  gradients.passes = static_cast<std::uint8_t>(std::min(old.passes + 1, 255));
  gradients.unscale_site = old.unscale_site;
  gradients.mixed_site = old.divided && !old.unscaled && !old.used ? old.divide_site : old.mixed_site;
}

void apply(const TraceView& view, const ProtocolEvent& event, ProtocolState& state) {
  switch (event.kind) {
    case EventKind::backward:
      if ((event.flags & event_flag::gradients_only) != 0) break;
      for (std::size_t i = 0; i < state.optimizers.size(); ++i) {
        const bool named = (event.optimizers >> i & 1U) != 0;
        const bool possible = event.optimizers == 0 && i < view.trace().optimizers.size();
        if (!named && !possible) continue;
        add_pass(event, i, named || view.trace().optimizers.size() == 1, state.optimizers[i]);
        if (const auto scaler = state.scaler_of_loss.find(event.site); scaler != state.scaler_of_loss.end())
          state.optimizers[i].scaler = scaler->second;
      }
      break;
    case EventKind::unscale:
      for_objects(state, event.object, [&](GradientState& gradients) {
        gradients.unscaled = true;
        gradients.unscale_site = event.site;
        gradients.found_inf = (event.flags & event_flag::found_inf) != 0;
      });
      break;
    case EventKind::gradient_read: {
      const trace::Site* const site = view.site(event.site);
      const bool norm =
          site == nullptr || is_norm(site->name) || squares(site->name) || site->api.find("norm") != std::string::npos;
      if (norm) for_objects(state, event.object, [](GradientState& gradients) { gradients.norm_read = true; });
      break;
    }
    case EventKind::gradient_write:
      for_objects(state, event.object, [&](GradientState& gradients) {
        gradients.written = true;
        if ((event.flags & event_flag::by_inverse_scale) != 0) {
          gradients.divided = true;
          gradients.divide_site = event.site;
        } else if (gradients.divided && multiplies_by_scale(view, event.site)) {
          gradients.divided = false;
        }
      });
      break;
    case EventKind::gradient_clear:
      for_objects(state, event.object, [](GradientState& gradients) { gradients = {}; });
      break;
    case EventKind::optimizer_step:
      note_outcome(view, state, event.object, true);
      for_objects(state, event.object, [](GradientState& gradients) { gradients.used = true; });
      break;
    case EventKind::optimizer_skip:
      note_outcome(view, state, event.object, false);
      for_objects(state, event.object, [](GradientState& gradients) { gradients.used = true; });
      break;
    case EventKind::schedule_step:
      if (event.object >= 0 && event.object < static_cast<std::int64_t>(state.schedules.size())) {
        state.schedules[static_cast<std::size_t>(event.object)] = {};
      }
      break;
    case EventKind::scale_read:
      for_objects(state, trace::none, [](GradientState& gradients) { gradients.scale_read = true; });
      break;
    case EventKind::scaler_update:
      for_objects(state, trace::none, [&](GradientState& gradients) {
        // Another scaler's update does not change the scale that these gradients have.
        const bool of_other = gradients.scaler != trace::none && event.object != trace::none &&
                              gradients.scaler != event.object && !view.updates(gradients.scaler).empty();
        gradients.updated = gradients.updated || !of_other;
      });
      // Another process found non-finite values: no optimizer steps, and no event says so.
      if ((event.flags & event_flag::found_inf) == 0) break;
      for (std::size_t i = 0; i < state.optimizers.size(); ++i) {
        GradientState& gradients = state.optimizers[i];
        if (!gradients.present || !gradients.unscaled || gradients.used) continue;
        note_outcome(view, state, static_cast<std::int64_t>(i), false);
        gradients.used = true;
      }
      break;
    case EventKind::scale_loss:
      if (event.site != trace::none) state.scaler_of_loss[event.site] = event.object;
      break;
    case EventKind::loss_read:
    case EventKind::refusal:
    case EventKind::parameter_write:
      break;
  }
}

void walk_step(const TraceView& view, const StepSpan& steps, std::span<const ProtocolEvent> events,
               ProtocolState& state, const ProtocolVisitor& visit) {
  for (const ProtocolEvent& event : events) {
    visit(steps, event, state);
    apply(view, event, state);
  }
}

}  // namespace

bool may_know_scale(const TraceView& view) {
  // Reads of PyTorch's own scaler are seen in Python.
  const auto& scalers = view.trace().scalers;
  const bool reads_are_seen =
      view.run().language == "python" && std::all_of(scalers.begin(), scalers.end(), [](const trace::Scaler& scaler) {
        return scaler.implementation.starts_with("torch.");
      });
  return !reads_are_seen || view.any_event(EventKind::scale_read);
}

bool multiplies_by_scale(const TraceView& view, std::int64_t id) {
  const trace::Site* const site = view.site(id);
  if (site == nullptr) return false;
  // The number is that of the first call.
  const double scale = view.scale_at(std::max<std::int64_t>(view.totals(id).first_step, 0)).value_or(1);
  return scale != 1 && std::abs(factor_of(*site) / scale - 1) < 1e-5;
}

const GradientState& ProtocolState::of(std::int64_t optimizer) const noexcept {
  static const GradientState absent;
  return valid(optimizer) ? optimizers[static_cast<std::size_t>(optimizer)] : absent;
}

bool runs_in_hook(const TraceView& view, const trace::Site& site) {
  if (site.kind != trace::SiteKind::op || site.phase != trace::Phase::backward || site.in_recompute) return false;
  const trace::Site* const node = view.parent(site);
  if (node != nullptr && node->name.find("AccumulateGrad") != std::string::npos) return true;
  return has_line_beside(site, node);
}

const trace::Site* unscaling_hook(const TraceView& view) {
  constexpr double smallest_scale = 64;
  const auto& sites = view.trace().sites;
  const auto found = std::find_if(sites.begin(), sites.end(), [&](const trace::Site& site) {
    if (!runs_in_hook(view, site)) return false;
    const double number = 1 / factor_of(site);
    if (!(number >= smallest_scale) || std::isinf(number)) return false;
    const auto scale = view.scale_at(std::max<std::int64_t>(view.totals(site.id).first_step, 0));
    return !scale || std::abs(number / *scale - 1) < 1e-5;
  });
  return found != sites.end() ? &*found : nullptr;
}

double own_loss_scale(const TraceView& view) {
  constexpr double smallest_scale = 64;
  if (view.scaled()) return 0;
  for (const trace::Site& site : view.trace().sites) {
    if (!view.is_loss_site(site.id) || base_name(site.name) != "mul" || site.scalars.size() != 1) continue;
    if (site.scalars.front() >= smallest_scale) return site.scalars.front();
  }
  return 0;
}

std::string optimizer_name(const TraceView& view, std::int64_t optimizer) {
  const trace::Optimizer* const known = view.optimizer(optimizer);
  return known != nullptr && !known->name.empty() ? known->name : "the optimizer";
}

void extend(StepSpan& span, const StepSpan& more) noexcept {
  if (span.count == 0) {
    span = more;
    return;
  }
  // Events come in order, so what ends no later has been counted: it is another event of the same steps.
  if (more.last <= span.last) return;
  span.last = more.last;
  span.count += more.count;
}

void walk_protocol(const TraceView& view, const ProtocolVisitor& visit) {
  ProtocolState state;
  state.schedules.resize(view.trace().schedules.size());
  for (const trace::StepRun& run : view.trace().step_runs) {
    const auto events = view.pattern_events(run);
    for (std::int64_t done = 0; done < run.count; ++done) {
      const ProtocolState before = state;
      const std::int64_t step = run.first_step + done;
      walk_step(view, {step, step, 1}, events, state, visit);
      const std::int64_t left = run.count - done - 1;
      if (left == 0 || state != before) continue;
      walk_step(view, {step + 1, step + left, left}, events, state, visit);
      break;
    }
  }
}

std::vector<std::int64_t> concerned(const ProtocolEvent& event, const ProtocolState& before) {
  if (valid(event.object)) return {event.object};
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < before.optimizers.size(); ++i) {
    if (before.optimizers[i].present) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

bool clips_nothing(const trace::Site& site) {
  if (site.api.find("clip_grad") == std::string::npos) return false;
  return std::any_of(site.api_arguments.begin(), site.api_arguments.end(), [](const auto& argument) {
    return (argument.first == "max_norm" || argument.first == "clip_value") && std::isinf(argument.second);
  });
}

}  // namespace ampscope::analyzers
