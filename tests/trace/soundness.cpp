#include "tests/trace/soundness.h"

#include <algorithm>

#include "trace/schema.h"

namespace ampscope::trace::test {

namespace {

template <class T>
bool dense(const std::vector<T>& table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].id != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

/// An id is none or an index of its table.
template <class T>
bool good(std::int64_t id, const std::vector<T>& table) {
  return id >= none && id < static_cast<std::int64_t>(table.size());
}

template <class T>
bool owned(std::int64_t id, const std::vector<T>& table) {
  return id >= 0 && good(id, table);
}

bool good_stats(const TensorStats& stats) {
  const ExponentHistogram& exponents = stats.exponents;
  return exponents.empty() || (exponents.first >= schema::min_exponent && exponents.last() <= schema::max_exponent &&
                               exponents.counts.front() != 0 && exponents.counts.back() != 0);
}

bool good_type(const Trace& trace, const TensorType& type) {
  return good(type.parameter, trace.parameters) && good(type.producer, trace.sites);
}

bool good_event(const Trace& trace, const ProtocolEvent& event) {
  if (event.kind > EventKind::refusal || !good(event.site, trace.sites)) return false;
  switch (event.kind) {
    case EventKind::scale_loss:
    case EventKind::scaler_update:
    case EventKind::scale_read:
      return good(event.object, trace.scalers);
    case EventKind::unscale:
    case EventKind::gradient_clear:
    case EventKind::optimizer_step:
    case EventKind::optimizer_skip:
    case EventKind::gradient_read:
    case EventKind::gradient_write:
    case EventKind::refusal:
      return good(event.object, trace.optimizers);
    case EventKind::schedule_step:
      return good(event.object, trace.schedules);
    default:
      return true;
  }
}

std::string unsound_sites(const Trace& trace) {
  if (trace.totals.size() != trace.sites.size()) return "totals are not by site";
  for (std::size_t i = 0; i < trace.totals.size(); ++i) {
    const SiteTotals& totals = trace.totals[i];
    if (totals.site != static_cast<std::int64_t>(i)) return "totals are not by site";
    if (totals.calls < 0 || totals.time_ns < 0 || totals.elements < 0 || totals.first_step < none) return "totals";
  }
  for (const auto& site : trace.sites) {
    if (!good(site.parent, trace.sites) || !good(site.forward_site, trace.sites)) return "site's references";
    const auto type_is_good = [&](const TensorType& type) { return good_type(trace, type); };
    if (!std::all_of(site.inputs.begin(), site.inputs.end(), type_is_good)) return "site's inputs";
    if (!std::all_of(site.outputs.begin(), site.outputs.end(), type_is_good)) return "site's outputs";
    std::size_t length = 0;
    for (std::int64_t at = site.parent; at != none; at = trace.sites[static_cast<std::size_t>(at)].parent) {
      if (++length >= trace.sites.size()) return "sites enclose one another";
    }
  }
  return {};
}

std::string unsound_steps(const Trace& trace) {
  std::int64_t end = 0;
  for (const auto& run : trace.step_runs) {
    if (run.first_step < end || run.count <= 0 || !good(run.pattern, trace.patterns)) return "step runs";
    end = run.first_step + run.count;
  }
  if (trace.steps() < end) return "number of steps";
  for (const auto& pattern : trace.patterns) {
    for (const auto& event : pattern.events) {
      if (!good_event(trace, event)) return "events of a pattern";
    }
  }
  for (const auto& update : trace.scaler_updates) {
    if (!good(update.scaler, trace.scalers)) return "scaler updates";
  }
  return {};
}

std::string unsound_values(const Trace& trace) {
  for (std::size_t i = 0; i < trace.gradients.size(); ++i) {
    const GradientWindow& window = trace.gradients[i];
    if (!owned(window.parameter, trace.parameters) || !good_stats(window.stats)) return "gradients";
    if (i > 0 && window.first_step < trace.gradients[i - 1].first_step) return "order of gradients";
  }
  for (const auto& gradient : trace.nonfinite_gradients) {
    if (!owned(gradient.parameter, trace.parameters) || gradient.count < 0) return "non-finite gradients";
  }
  for (const auto& numerics : trace.numerics) {
    if (!owned(numerics.site, trace.sites) || !good_stats(numerics.stats)) return "numerics";
  }
  for (const auto& errors : trace.rounding_errors) {
    if (!owned(errors.site, trace.sites) || errors.elements < 0) return "rounding errors";
  }
  for (std::size_t i = 0; i < trace.nonfinite_events.size(); ++i) {
    const NonfiniteEvent& event = trace.nonfinite_events[i];
    if (!good(event.site, trace.sites)) return "non-finite events";
    if (i > 0 && event.order < trace.nonfinite_events[i - 1].order) return "order of non-finite events";
    for (const auto* witnesses : {&event.inputs, &event.outputs}) {
      for (const auto& witness : *witnesses) {
        if (!good_type(trace, witness.type) || !good_stats(witness.stats)) return "witnesses";
      }
    }
  }
  for (const auto& record : trace.flight_records) {
    for (const auto& call : record.calls) {
      if (!good(call.site, trace.sites)) return "flight records";
    }
  }
  for (const auto& trip : trace.round_trips) {
    if (!good(trip.down, trace.sites) || !good(trip.up, trace.sites) || !good(trip.parameter, trace.parameters)) {
      return "round trips";
    }
  }
  return {};
}

}  // namespace

std::string unsound(const Trace& trace) {
  if (!dense(trace.sites) || !dense(trace.parameters) || !dense(trace.optimizers) || !dense(trace.scalers) ||
      !dense(trace.schedules) || !dense(trace.patterns)) {
    return "ids are not indices";
  }
  for (const auto& parameter : trace.parameters) {
    if (!good(parameter.optimizer, trace.optimizers)) return "parameters";
  }
  for (const auto& schedule : trace.schedules) {
    if (!good(schedule.optimizer, trace.optimizers)) return "schedules";
  }
  for (const auto& part : {unsound_sites(trace), unsound_steps(trace), unsound_values(trace)}) {
    if (!part.empty()) return part;
  }
  return {};
}

}  // namespace ampscope::trace::test
