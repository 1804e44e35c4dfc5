#include "trace/references.h"

#include <algorithm>
#include <string_view>

namespace ampscope::trace {

namespace {

class Resolver {
 public:
  Resolver(Trace& trace, Budget& memory) : trace_(trace), memory_(memory) {}

  void site(std::int64_t& id) { refer(trace_.sites, id); }
  void parameter(std::int64_t& id) { refer(trace_.parameters, id); }
  void optimizer(std::int64_t& id) { refer(trace_.optimizers, id); }
  void scaler(std::int64_t& id) { refer(trace_.scalers, id); }
  void schedule(std::int64_t& id) { refer(trace_.schedules, id); }
  void pattern(std::int64_t& id) { refer(trace_.patterns, id); }

  void tensor(TensorType& type) {
    parameter(type.parameter);
    site(type.producer);
  }

  void tensors(std::vector<WitnessTensor>& tensors) {
    for (auto& witness : tensors)
      tensor(witness.type);
  }

  void event(ProtocolEvent& event) {
    site(event.site);
    switch (event.kind) {
      case EventKind::scale_loss:
      case EventKind::scaler_update:
      case EventKind::scale_read:
        scaler(event.object);
        break;
      case EventKind::unscale:
      case EventKind::gradient_clear:
      case EventKind::optimizer_step:
      case EventKind::optimizer_skip:
      case EventKind::gradient_read:
      case EventKind::gradient_write:
      case EventKind::refusal:
        optimizer(event.object);
        break;
      case EventKind::schedule_step:
        schedule(event.object);
        break;
      case EventKind::backward:
      case EventKind::loss_read:
      case EventKind::parameter_write:
        break;
    }
  }

  /// Rows that say nothing without the entry they belong to.
  template <class T>
  void drop_unowned(std::vector<T>& rows, std::int64_t T::* owner) {
    changed_ += std::erase_if(rows, [owner](const T& row) { return row.*owner < 0; });
  }

  void break_parent_circles() {
    enum class Mark : std::uint8_t { unseen, on_the_way, done };
    std::vector<Mark> marks(trace_.sites.size(), Mark::unseen);
    std::vector<std::int64_t> way;
    for (const auto& start : trace_.sites) {
      std::int64_t at = start.id;
      while (at >= 0 && marks[static_cast<std::size_t>(at)] == Mark::unseen) {
        marks[static_cast<std::size_t>(at)] = Mark::on_the_way;
        way.push_back(at);
        at = trace_.sites[static_cast<std::size_t>(at)].parent;
      }
      if (at >= 0 && marks[static_cast<std::size_t>(at)] == Mark::on_the_way) {
        trace_.sites[static_cast<std::size_t>(way.back())].parent = none;
        ++changed_;
      }
      for (const std::int64_t id : way)
        marks[static_cast<std::size_t>(id)] = Mark::done;
      way.clear();
    }
  }

  [[nodiscard]] std::uint64_t changed() const { return changed_; }

 private:
  template <class T>
  void refer(std::vector<T>& table, std::int64_t& id) {
    if (id == none || grow(table, id, memory_)) return;
    id = none;
    ++changed_;
  }

  Trace& trace_;
  Budget& memory_;
  std::uint64_t changed_ = 0;
};

}  // namespace

std::uint64_t resolve_references(Trace& trace, Budget& memory) {
  Resolver resolve(trace, memory);
  // By index: a site that refers to one beyond the end makes the table grow.
  for (std::size_t i = 0; i < trace.sites.size(); ++i) {
    Site site = std::move(trace.sites[i]);
    resolve.site(site.parent);
    resolve.site(site.forward_site);
    for (auto& type : site.inputs)
      resolve.tensor(type);
    for (auto& type : site.outputs)
      resolve.tensor(type);
    trace.sites[i] = std::move(site);
  }
  for (std::size_t i = 0; i < trace.parameters.size(); ++i) {
    // The table may grow, so the entry is not held by reference.
    std::int64_t replaces = trace.parameters[i].replaces;
    resolve.parameter(replaces);
    trace.parameters[i].replaces = replaces;
    resolve.site(trace.parameters[i].made_by);
    resolve.optimizer(trace.parameters[i].optimizer);
  }
  for (auto& schedule : trace.schedules)
    resolve.optimizer(schedule.optimizer);
  for (auto& pattern : trace.patterns) {
    for (auto& event : pattern.events)
      resolve.event(event);
  }
  for (auto& run : trace.step_runs)
    resolve.pattern(run.pattern);
  for (auto& update : trace.scaler_updates)
    resolve.scaler(update.scaler);
  for (auto& window : trace.gradients)
    resolve.parameter(window.parameter);
  for (auto& gradient : trace.nonfinite_gradients)
    resolve.parameter(gradient.parameter);
  for (auto& numerics : trace.numerics)
    resolve.site(numerics.site);
  for (auto& errors : trace.rounding_errors)
    resolve.site(errors.site);
  for (auto& write : trace.writes) {
    resolve.site(write.site);
    resolve.site(write.writer);
    resolve.parameter(write.parameter);
  }
  for (auto& event : trace.nonfinite_events) {
    resolve.site(event.site);
    resolve.tensors(event.inputs);
    resolve.tensors(event.outputs);
  }
  for (auto& record : trace.flight_records) {
    for (auto& call : record.calls)
      resolve.site(call.site);
  }
  for (auto& trip : trace.round_trips) {
    resolve.site(trip.down);
    resolve.site(trip.up);
    resolve.parameter(trip.parameter);
  }
  for (auto& point : trace.series) {
    if (point.name == "lr") resolve.optimizer(point.object);
  }
  resolve.drop_unowned(trace.gradients, &GradientWindow::parameter);
  resolve.drop_unowned(trace.nonfinite_gradients, &NonfiniteGradient::parameter);
  resolve.drop_unowned(trace.numerics, &SiteNumerics::site);
  resolve.drop_unowned(trace.rounding_errors, &RoundingErrors::site);
  resolve.drop_unowned(trace.writes, &WriteSample::site);

  std::uint64_t lost_totals = 0;
  if (!trace.totals.empty() && !grow(trace.sites, trace.totals.back().site, memory)) {
    lost_totals = trace.totals.size() - trace.sites.size();
  }
  const std::size_t known = std::min(trace.totals.size(), trace.sites.size());
  trace.totals.resize(trace.sites.size());
  for (std::size_t i = known; i < trace.totals.size(); ++i)
    trace.totals[i].site = static_cast<std::int64_t>(i);
  resolve.break_parent_circles();
  return resolve.changed() + lost_totals;
}

}  // namespace ampscope::trace
