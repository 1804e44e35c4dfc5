#include "analyzers/core/trace_view.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "analyzers/core/cut_short.h"
#include "analyzers/core/discarded_gradients.h"
#include "analyzers/core/op_kinds.h"

namespace ampscope::analyzers {

using trace::DType;
using trace::EventKind;
using trace::none;
using trace::Site;
using trace::SiteKind;

namespace {

template <typename Record>
const Record* at(const std::vector<Record>& records, std::int64_t id) noexcept {
  return id >= 0 && id < static_cast<std::int64_t>(records.size()) ? &records[static_cast<std::size_t>(id)] : nullptr;
}

template <typename Value>
std::span<const Value> list_at(const std::vector<std::vector<Value>>& lists, std::int64_t id) noexcept {
  if (id < 0 || id >= static_cast<std::int64_t>(lists.size())) return {};
  return lists[static_cast<std::size_t>(id)];
}

std::string device_type(const Site& site) {
  for (const auto* tensors : {&site.outputs, &site.inputs}) {
    for (const trace::TensorType& tensor : *tensors) {
      if (!tensor.device.empty()) return tensor.device.substr(0, tensor.device.find(':'));
    }
  }
  return site.autocast_device;
}

/// A site that passes its own tensors on to sites inside it: an operator, an autograd node, an autograd.Function; not a
/// range that merely lasts while others run.
bool is_level(const Site& site) noexcept {
  return site.kind != SiteKind::range || !site.outputs.empty();
}

void note(std::vector<PrecisionUse>& uses, DType dtype, bool autocast, const std::string& device, std::int64_t calls) {
  auto found = std::find_if(uses.begin(), uses.end(), [&](const PrecisionUse& use) {
    return use.dtype == dtype && use.autocast == autocast && use.device == device;
  });
  if (found == uses.end()) found = uses.insert(uses.end(), {dtype, autocast, device, 0, 0});
  found->sites += 1;
  found->calls += calls;
}

void most_calls_first(std::vector<PrecisionUse>& uses) {
  std::stable_sort(uses.begin(), uses.end(),
                   [](const PrecisionUse& a, const PrecisionUse& b) { return a.calls > b.calls; });
}

}  // namespace

TraceView::TraceView(const trace::Trace& trace) : trace_(&trace), steps_(trace.steps()) {
  index_parents();
  index_sites();
  index_values();
  index_steps();
  index_precision();
  index_outcomes();
}

const Site* TraceView::site(std::int64_t id) const noexcept {
  return at(trace_->sites, id);
}

const trace::SiteTotals& TraceView::totals(std::int64_t site) const noexcept {
  static const trace::SiteTotals unknown;
  const trace::SiteTotals* const found = at(trace_->totals, site);
  return found != nullptr ? *found : unknown;
}

const trace::Parameter* TraceView::parameter(std::int64_t id) const noexcept {
  return at(trace_->parameters, id);
}

const trace::Optimizer* TraceView::optimizer(std::int64_t id) const noexcept {
  return at(trace_->optimizers, id);
}

const trace::Scaler* TraceView::scaler(std::int64_t id) const noexcept {
  return at(trace_->scalers, id);
}

const trace::Schedule* TraceView::schedule(std::int64_t id) const noexcept {
  return at(trace_->schedules, id);
}

// --- sites
// -------------------------------------------------------------------------------------------------------------

void TraceView::index_parents() {
  // A circle of parents would make every walk upwards endless; it is cut where it closes.
  enum class Mark : std::uint8_t { unseen, on_the_way, done };
  const std::size_t count = trace_->sites.size();
  parents_.assign(count, none);
  std::vector<Mark> marks(count, Mark::unseen);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::size_t> way;
    std::size_t current = i;
    while (marks[current] == Mark::unseen) {
      marks[current] = Mark::on_the_way;
      way.push_back(current);
      const Site* const parent = at(trace_->sites, trace_->sites[current].parent);
      if (parent == nullptr) break;
      const auto next = static_cast<std::size_t>(trace_->sites[current].parent);
      if (marks[next] == Mark::on_the_way) break;
      parents_[current] = static_cast<std::int64_t>(next);
      current = next;
    }
    for (const std::size_t passed : way)
      marks[passed] = Mark::done;
  }
}

const Site* TraceView::parent(const Site& site) const noexcept {
  return site.id >= 0 && site.id < static_cast<std::int64_t>(parents_.size())
             ? this->site(parents_[static_cast<std::size_t>(site.id)])
             : nullptr;
}

void TraceView::index_sites() {
  const std::size_t count = trace_->sites.size();
  children_.resize(count);
  consumers_.resize(count);
  backward_nodes_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Site& site = trace_->sites[i];
    const auto id = static_cast<std::int64_t>(i);
    if (parents_[i] != none) children_[static_cast<std::size_t>(parents_[i])].push_back(id);
    if (at(trace_->sites, site.forward_site) != nullptr) {
      backward_nodes_[static_cast<std::size_t>(site.forward_site)].push_back(id);
    }
    for (const trace::TensorType& input : site.inputs) {
      if (at(trace_->sites, input.producer) == nullptr) continue;
      has_producers_ = true;
      auto& list = consumers_[static_cast<std::size_t>(input.producer)];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
}

std::span<const std::int64_t> TraceView::children(std::int64_t site) const noexcept {
  return list_at(children_, site);
}

std::span<const std::int64_t> TraceView::backward_nodes(std::int64_t forward_site) const noexcept {
  return list_at(backward_nodes_, forward_site);
}

const Site* TraceView::outermost_op(std::int64_t site) const noexcept {
  const Site* op = this->site(site);
  while (op != nullptr) {
    const Site* const outer = parent(*op);
    if (outer == nullptr || outer->kind != SiteKind::op) break;
    op = outer;
  }
  return op;
}

const Site* TraceView::backward_node(std::int64_t site) const noexcept {
  const Site* node = this->site(site);
  while (node != nullptr && node->kind != SiteKind::backward_node)
    node = parent(*node);
  return node;
}

const Site* TraceView::forward_of(std::int64_t site) const noexcept {
  const Site* const node = backward_node(site);
  return node != nullptr ? this->site(node->forward_site) : nullptr;
}

template <typename Visit>
void TraceView::for_each_level(std::int64_t id, Visit visit) const {
  const Site* const start = site(id);
  if (start == nullptr) return;
  for (const Site* outer = parent(*start); outer != nullptr && is_level(*outer); outer = parent(*outer)) {
    visit(outer->id);
  }
  std::vector<std::int64_t> below{id};
  while (!below.empty()) {
    const std::int64_t current = below.back();
    below.pop_back();
    visit(current);
    for (const std::int64_t child : children(current))
      below.push_back(child);
  }
}

std::vector<std::int64_t> TraceView::producers(std::int64_t site) const {
  std::set<std::int64_t> own;
  std::set<std::int64_t> found;
  for_each_level(site, [&](std::int64_t level) { own.insert(level); });
  for (const std::int64_t level : own) {
    for (const trace::TensorType& input : trace_->sites[static_cast<std::size_t>(level)].inputs) {
      if (at(trace_->sites, input.producer) != nullptr && !own.contains(input.producer)) found.insert(input.producer);
    }
  }
  return {found.begin(), found.end()};
}

std::vector<std::int64_t> TraceView::consumers(std::int64_t site) const {
  std::set<std::int64_t> own;
  std::set<std::int64_t> found;
  for_each_level(site, [&](std::int64_t level) { own.insert(level); });
  for (const std::int64_t level : own) {
    for (const std::int64_t consumer : list_at(consumers_, level)) {
      if (!own.contains(consumer)) found.insert(consumer);
    }
  }
  return {found.begin(), found.end()};
}

std::vector<bool> TraceView::ancestors(std::int64_t site) const {
  std::vector<bool> reached(trace_->sites.size(), false);
  std::vector<std::int64_t> open;
  const auto reach = [&](std::int64_t id) {
    for_each_level(id, [&](std::int64_t level) { reached[static_cast<std::size_t>(level)] = true; });
    open.push_back(id);
  };
  if (this->site(site) == nullptr) return reached;
  reach(site);
  while (!open.empty()) {
    const std::int64_t current = open.back();
    open.pop_back();
    for (const std::int64_t producer : producers(current)) {
      if (!reached[static_cast<std::size_t>(producer)]) reach(producer);
    }
  }
  return reached;
}

bool TraceView::is_loss_site(std::int64_t site) const noexcept {
  return std::binary_search(loss_sites_.begin(), loss_sites_.end(), site);
}

bool TraceView::is_scaling_site(std::int64_t site) const noexcept {
  return std::binary_search(scaling_sites_.begin(), scaling_sites_.end(), site);
}

// --- steps
// -------------------------------------------------------------------------------------------------------------

std::span<const trace::ProtocolEvent> TraceView::pattern_events(const trace::StepRun& run) const noexcept {
  const trace::StepPattern* const pattern = at(trace_->patterns, run.pattern);
  if (pattern == nullptr) return {};
  return pattern->events;
}

std::span<const trace::ProtocolEvent> TraceView::events(std::int64_t step) const noexcept {
  const auto& runs = trace_->step_runs;
  auto after = std::upper_bound(runs.begin(), runs.end(), step,
                                [](std::int64_t s, const trace::StepRun& run) { return s < run.first_step; });
  if (after == runs.begin()) return {};
  const trace::StepRun& run = *std::prev(after);
  return step < run.first_step + run.count ? pattern_events(run) : std::span<const trace::ProtocolEvent>{};
}

void TraceView::index_steps() {
  event_counts_.assign(static_cast<std::size_t>(EventKind::refusal) + 1, 0);
  std::set<std::int64_t> losses;
  std::set<std::int64_t> scaling;
  std::set<std::int64_t> skipped;
  std::set<std::int64_t> overflowed;  // steps in which a scaler saw non-finite gradients
  for (const trace::ScalerUpdate& update : trace_->scaler_updates) {
    if (update.found_inf != 0) overflowed.insert(update.step);
  }
  std::set<std::int64_t> held_back;  // optimizers whose gradients were unscaled and that did not step
  bool updated = false;
  for (const trace::StepRun& run : trace_->step_runs) {
    bool skips = false;
    bool fused = false;
    // The update may be recorded as the beginning of the next step.
    if (std::exchange(updated, false)) held_back.clear();
    for (const trace::ProtocolEvent& event : pattern_events(run)) {
      const auto kind = static_cast<std::size_t>(event.kind);
      if (kind < event_counts_.size()) event_counts_[kind] += run.count;
      if (event.kind == EventKind::backward && site(event.site) != nullptr) losses.insert(event.site);
      if (event.kind == EventKind::scale_loss && site(event.site) != nullptr) scaling.insert(event.site);
      if (event.kind == EventKind::backward && (event.flags & trace::event_flag::scaled) != 0) {
        scaled_ = true;
        const Site* const start = site(event.site);
        if (start != nullptr && base_name(start->name) == "mul") scaling.insert(event.site);
      }
      skips = skips || event.kind == EventKind::optimizer_skip;
      if (event.kind == EventKind::unscale) held_back.insert(event.object);
      if (event.kind == EventKind::optimizer_step) held_back.erase(event.object);
      updated = updated || event.kind == EventKind::scaler_update;
      fused = fused || (event.kind == EventKind::optimizer_step && (event.flags & trace::event_flag::fused) != 0);
    }
    // Gradients that unscaling found finite are not stepped with all the same when another process found others.
    if (!skips && !fused && held_back.empty()) continue;
    for (std::int64_t step = run.first_step; step < run.first_step + run.count; ++step) {
      if (skips || overflowed.contains(step)) skipped.insert(step);
    }
  }
  loss_sites_.assign(losses.begin(), losses.end());
  for (const Site& site : trace_->sites) {
    if (site.phase == trace::Phase::scaler || site.api.starts_with("GradScaler.scale")) scaling.insert(site.id);
  }
  scaling_sites_.assign(scaling.begin(), scaling.end());
  skipped_steps_.assign(skipped.begin(), skipped.end());
}

bool TraceView::skipped(std::int64_t step) const noexcept {
  return std::binary_search(skipped_steps_.begin(), skipped_steps_.end(), step);
}

std::int64_t TraceView::count_events(EventKind kind) const noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < event_counts_.size() ? event_counts_[index] : 0;
}

std::vector<bool> TraceView::loss_makers() const {
  std::vector<bool> makes_loss(trace_->sites.size(), false);
  std::vector<std::int64_t> open(loss_sites_);
  while (!open.empty()) {
    const std::int64_t current = open.back();
    open.pop_back();
    if (makes_loss[static_cast<std::size_t>(current)]) continue;
    for_each_level(current, [&](std::int64_t level) { makes_loss[static_cast<std::size_t>(level)] = true; });
    // A term of a loss that is non-finite makes the loss so: sums and products with scalars are followed upwards.
    const std::string_view base = base_name(trace_->sites[static_cast<std::size_t>(current)].name);
    if (base != "mul" && base != "add" && base != "sub" && base != "rsub" && base != "div" && base != "neg") continue;
    for (const std::int64_t producer : producers(current)) {
      const Site& made_by = trace_->sites[static_cast<std::size_t>(producer)];
      const bool scalar = std::any_of(made_by.outputs.begin(), made_by.outputs.end(),
                                      [](const trace::TensorType& output) { return output.shape.empty(); });
      if (scalar && made_by.phase != trace::Phase::backward) open.push_back(producer);
    }
  }
  return makes_loss;
}

bool overwrites_parameter(const trace::NonfiniteEvent& event) noexcept {
  return event.kind != trace::OriginKind::absorber &&
         std::any_of(event.inputs.begin(), event.inputs.end(), [](const trace::WitnessTensor& input) {
           return !input.looked_at && input.type.parameter != trace::none;  // Its memory holds the result now.
         });
}

bool has_line_beside(const trace::Site& call, const trace::Site* node) noexcept {
  return call.source.known() &&
         (node == nullptr || node->source.file != call.source.file || node->source.line != call.source.line);
}

void TraceView::index_outcomes() {
  for (const std::int64_t step : skipped_steps_)
    outcomes_[step].skipped = true;
  std::erase_if(nonfinite_gradients_, [this](const auto* gradient) { return discarded(*this, *gradient); });
  for (const trace::NonfiniteGradient* gradient : nonfinite_gradients_)
    outcomes_[gradient->step].gradients_nonfinite = true;
  std::set<std::int64_t> overflowed_by_scaling;
  const std::vector<bool> makes_loss = loss_makers();
  for (const trace::NonfiniteEvent& event : trace_->nonfinite_events) {
    if (event.kind == trace::OriginKind::absorber) continue;
    if (site(event.site) == nullptr || !makes_loss[static_cast<std::size_t>(event.site)]) continue;
    // A finite loss that overflows when the scaler multiplies it is the scaler's affair, like a gradient that does.
    if (event.kind == trace::OriginKind::producer && is_scaling_site(event.site)) {
      outcomes_[event.step].gradients_nonfinite = true;
      overflowed_by_scaling.insert(event.step);
    } else {
      outcomes_[event.step].loss_nonfinite = true;
    }
  }
  for (const trace::SeriesPoint& point : trace_->series) {
    // A wide window does not say in which of its steps the loss was bad; the events above do. What is recorded is the
    // value that backward started from, so a loss that overflowed by scaling alone is in it as well.
    if (point.name == "loss" && point.nonfinite > 0 && point.first_step == point.last_step &&
        !overflowed_by_scaling.contains(point.first_step)) {
      outcomes_[point.first_step].loss_nonfinite = true;
    }
  }
  for (const trace::SeriesPoint& point : trace_->series) {
    if (point.name == "loss" && point.nonfinite > 0 && point.first_step != point.last_step) attribute_loss(point);
  }
  for (const trace::SeriesPoint& point : trace_->series) {
    // Every backward pass of these steps began with a finite loss: the program has dropped the others.
    const std::int64_t steps = point.last_step - point.first_step + 1;
    if (point.name != "loss" || point.nonfinite != 0 || static_cast<std::int64_t>(point.count) < steps) continue;
    for (auto it = outcomes_.lower_bound(point.first_step); it != outcomes_.upper_bound(point.last_step); ++it)
      it->second.loss_nonfinite = false;
  }
  if (const std::optional<std::int64_t> step = step_cut_short(*this)) {
    outcomes_[*step].loss_nonfinite = outcomes_[*step].cut_short = true;
  }
  // Updates by hand have no step that says what went into it; the write itself does.
  for (const trace::NonfiniteEvent& event : trace_->nonfinite_events) {
    const Site* const writer = site(event.site);
    if (writer == nullptr || writer->phase != trace::Phase::forward || !overwrites_parameter(event)) continue;
    outcomes_[event.step].stepped = outcomes_[event.step].applied_nonfinite = true;
  }
  for (const trace::StepRun& run : trace_->step_runs) {
    bool flagged = false;
    std::set<std::int64_t> stepped;       // optimizers
    std::set<std::int64_t> found_finite;  // … whose gradients the scaler has looked at before they stepped
    bool rewritten = false;               // gradients were changed between: what was non-finite may have been put right
    for (const trace::ProtocolEvent& event : pattern_events(run)) {
      if (event.kind == EventKind::gradient_write) {
        if (event.object == none) found_finite.clear();
        found_finite.erase(event.object);
      }
      rewritten = rewritten || event.kind == EventKind::gradient_write || event.kind == EventKind::gradient_clear;
      if (event.kind == EventKind::unscale && (event.flags & trace::event_flag::found_inf) == 0)
        found_finite.insert(event.object);
      if (event.kind == EventKind::backward) found_finite.clear();
      if (event.kind != EventKind::optimizer_step) continue;
      stepped.insert(event.object);
      // As long as it is not known whose the parameters are, the flag may mean those of another optimizer.
      const bool of_other = trace_->optimizers.size() > 1 && found_finite.contains(event.object);
      flagged = flagged || ((event.flags & trace::event_flag::nonfinite_gradients) != 0 && !of_other);
    }
    if (flagged) {
      for (std::int64_t step = run.first_step; step < run.first_step + run.count; ++step) {
        if (!skipped(step)) outcomes_[step].applied_nonfinite = true;
      }
    }
    if (stepped.empty()) continue;
    // Of several optimizers one may step while another is yet to come, or is kept from it.
    const auto applies = [&](const trace::NonfiniteGradient* gradient) {
      const trace::Parameter* const owned = parameter(gradient->parameter);
      const std::int64_t owner = owned != nullptr ? owned->optimizer : trace::none;
      // A hook has replaced what was not finite.
      if (found_finite.contains(owner) || (owner == trace::none && !found_finite.empty())) return false;
      return owner == trace::none || stepped.contains(owner) || stepped.contains(trace::none);
    };
    for (auto it = outcomes_.lower_bound(run.first_step);
         it != outcomes_.end() && it->first < run.first_step + run.count; ++it) {
      it->second.stepped = true;
      if (!it->second.gradients_nonfinite || rewritten || it->second.skipped) continue;
      const auto gradients = nonfinite_gradients(it->first);
      if ((gradients.empty() && found_finite.empty()) || std::any_of(gradients.begin(), gradients.end(), applies)) {
        it->second.applied_nonfinite = true;
      }
    }
  }
}

void TraceView::attribute_loss(const trace::SeriesPoint& window) {
  // With no more bad steps in the window than non-finite losses, each of them has one.
  std::int64_t bad = 0;
  const auto first = outcomes_.lower_bound(window.first_step);
  const auto last = outcomes_.upper_bound(window.last_step);
  for (auto it = first; it != last; ++it)
    bad += it->second.bad() ? 1 : 0;
  if (bad > window.nonfinite) return;
  for (auto it = first; it != last; ++it)
    it->second.loss_nonfinite = it->second.loss_nonfinite || it->second.bad();
}

StepOutcome TraceView::outcome(std::int64_t step) const noexcept {
  const auto found = outcomes_.find(step);
  return found != outcomes_.end() ? found->second : StepOutcome{};
}

// --- precision
// ---------------------------------------------------------------------------------------------------------

void TraceView::index_precision() {
  for (const Site& site : trace_->sites) {
    if (site.kind != SiteKind::op || op_kind(site.name) != OpKind::matmul || !trace::is_floating(site.compute_dtype))
      continue;
    // The same product is seen at every level of a composite operator; the innermost one counts.
    const auto inner = children(site.id);
    const bool has_inner = std::any_of(inner.begin(), inner.end(), [&](std::int64_t child) {
      return op_kind(trace_->sites[static_cast<std::size_t>(child)].name) == OpKind::matmul;
    });
    if (has_inner) continue;
    const Site* const outer = outermost_op(site.id);
    const bool autocast = site.autocast || (outer != nullptr && outer->autocast);
    const DType chosen =
        site.autocast_dtype != DType::unknown || outer == nullptr ? site.autocast_dtype : outer->autocast_dtype;
    const std::int64_t calls = std::max<std::int64_t>(totals(site.id).calls, 1);
    const bool backward = site.phase == trace::Phase::backward && !site.in_recompute;
    if (site.phase != trace::Phase::forward && !backward && !site.in_recompute) continue;
    note(backward ? backward_precision_ : forward_precision_, site.compute_dtype,
         autocast && site.compute_dtype == chosen, device_type(site), calls);
  }
  most_calls_first(forward_precision_);
  most_calls_first(backward_precision_);
}

bool TraceView::autocast_used(DType dtype) const noexcept {
  return std::any_of(forward_precision_.begin(), forward_precision_.end(),
                     [&](const PrecisionUse& use) { return use.autocast && use.dtype == dtype; });
}

bool TraceView::weights_of(DType dtype) const noexcept {
  return std::any_of(trace_->parameters.begin(), trace_->parameters.end(),
                     [&](const trace::Parameter& parameter) { return parameter.dtype == dtype; });
}

std::string TraceView::precision() const {
  std::string text;
  for (const PrecisionUse& use : forward_precision_) {
    if (!use.autocast) continue;
    const std::string dtype = trace::short_dtype_name(use.dtype);
    if (text.find(dtype) != std::string::npos) continue;
    text += (text.empty() ? "" : " and ") + dtype;
  }
  if (!text.empty()) return text + " autocast";  // on which device, RunSummary::device says
  for (const DType half : {DType::float16, DType::bfloat16}) {
    if (weights_of(half)) return std::string(trace::short_dtype_name(half)) + " weights";
  }
  for (const PrecisionUse& use : forward_precision_) {
    if (trace::is_half(use.dtype)) return std::string(trace::short_dtype_name(use.dtype)) + " by casts of the program";
  }
  if (!forward_precision_.empty()) return trace::short_dtype_name(forward_precision_.front().dtype);
  for (const trace::Parameter& parameter : trace_->parameters) {
    if (trace::is_floating(parameter.dtype)) return trace::short_dtype_name(parameter.dtype);
  }
  return "unknown precision";
}

// --- values
// ------------------------------------------------------------------------------------------------------------

void TraceView::index_values() {
  updates_.resize(trace_->scalers.size());
  for (const trace::ScalerUpdate& update : trace_->scaler_updates) {
    if (scaler(update.scaler) != nullptr) updates_[static_cast<std::size_t>(update.scaler)].push_back(&update);
  }
  gradients_.resize(trace_->parameters.size());
  for (const trace::GradientWindow& window : trace_->gradients) {
    if (parameter(window.parameter) != nullptr)
      gradients_[static_cast<std::size_t>(window.parameter)].push_back(&window);
  }
  for (const trace::NonfiniteGradient& gradient : trace_->nonfinite_gradients)
    nonfinite_gradients_.push_back(&gradient);
  std::stable_sort(nonfinite_gradients_.begin(), nonfinite_gradients_.end(),
                   [](const auto* a, const auto* b) { return a->step < b->step; });
  for (const trace::SiteNumerics& numerics : trace_->numerics)
    numerics_[numerics.site].push_back(&numerics);
  for (auto& [site, list] : numerics_) {
    std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->step < b->step; });
  }
  for (const trace::NonfiniteEvent& event : trace_->nonfinite_events)
    (event.kind == trace::OriginKind::absorber ? absorbers_ : nonfinite_events_).push_back(&event);
  for (auto* events : {&nonfinite_events_, &absorbers_}) {
    std::stable_sort(events->begin(), events->end(), [](const auto* a, const auto* b) {
      return std::pair(a->step, a->order) < std::pair(b->step, b->order);
    });
  }
  for (const trace::NonfiniteEvent* event : nonfinite_events_)
    nonfinite_by_site_[event->site].push_back(event);
}

const trace::NonfiniteEvent* TraceView::latest_harmless(std::int64_t site, std::int64_t step) const noexcept {
  const auto found = nonfinite_by_site_.find(site);
  if (found == nonfinite_by_site_.end()) return nullptr;
  const trace::NonfiniteEvent* latest = nullptr;
  for (const trace::NonfiniteEvent* event : found->second) {
    if (event->step <= step && !outcome(event->step).bad()) latest = event;
  }
  return latest;
}

std::span<const trace::ScalerUpdate* const> TraceView::updates(std::int64_t scaler) const noexcept {
  return list_at(updates_, scaler);
}

std::optional<double> TraceView::scale_at(std::int64_t step, std::int64_t scaler) const noexcept {
  const auto& all = trace_->scaler_updates;
  const trace::ScalerUpdate* before = nullptr;
  auto update = std::lower_bound(all.begin(), all.end(), step,
                                 [](const trace::ScalerUpdate& u, std::int64_t s) { return u.step < s; });
  for (auto it = update; it != all.end(); ++it) {
    if (scaler == none || it->scaler == scaler) return it->scale_before;
  }
  for (auto it = update; it != all.begin(); --it) {
    before = &*std::prev(it);
    if (scaler == none || before->scaler == scaler) return before->scale_after;
  }
  return std::nullopt;
}

std::span<const trace::GradientWindow* const> TraceView::gradients(std::int64_t parameter) const noexcept {
  return list_at(gradients_, parameter);
}

std::span<const trace::NonfiniteGradient* const> TraceView::nonfinite_gradients(std::int64_t step) const noexcept {
  const auto [first, last] = std::equal_range(nonfinite_gradients_.begin(), nonfinite_gradients_.end(), step,
                                              [](const auto& a, const auto& b) {
                                                if constexpr (std::is_pointer_v<std::decay_t<decltype(a)>>) {
                                                  return a->step < b;
                                                } else {
                                                  return a < b->step;
                                                }
                                              });
  return {first, last};
}

std::optional<double> TraceView::gradient_norm(std::int64_t step, std::int64_t optimizer) const {
  double squares = 0;
  bool any = false;
  for (const trace::GradientWindow& window : trace_->gradients) {
    if (window.first_step > step) break;
    if (window.first_step != step || window.last_step != step) continue;
    const trace::Parameter* const owner = parameter(window.parameter);
    if (optimizer != none && owner != nullptr && owner->optimizer != none && owner->optimizer != optimizer) continue;
    if (window.stats.nonfinite() != 0) return std::nullopt;
    squares += window.stats.sum_squares;
    any = true;
  }
  if (!any) return std::nullopt;
  return std::sqrt(squares);
}

std::span<const trace::SiteNumerics* const> TraceView::numerics(std::int64_t site) const noexcept {
  const auto found = numerics_.find(site);
  if (found == numerics_.end()) return {};
  return found->second;
}

std::span<const trace::NonfiniteEvent* const> TraceView::nonfinite_events(std::int64_t step) const noexcept {
  const auto first = std::lower_bound(nonfinite_events_.begin(), nonfinite_events_.end(), step,
                                      [](const auto* event, std::int64_t s) { return event->step < s; });
  const auto last = std::upper_bound(first, nonfinite_events_.end(), step,
                                     [](std::int64_t s, const auto* event) { return s < event->step; });
  return {first, last};
}

std::vector<const trace::SeriesPoint*> TraceView::series(const std::string& name) const {
  std::vector<const trace::SeriesPoint*> points;
  for (const trace::SeriesPoint& point : trace_->series) {
    if (point.name == name) points.push_back(&point);
  }
  return points;
}

// --- words
// -------------------------------------------------------------------------------------------------------------

std::string TraceView::path(const std::string& file) const {
  // Lexically only: the analysis may run on another machine, and rules do no I/O.
  const std::filesystem::path base = std::filesystem::path(run().working_directory).lexically_normal();
  const std::filesystem::path full = std::filesystem::path(file).lexically_normal();
  if (!base.is_absolute() || !full.is_absolute()) return file;
  const std::string relative = full.lexically_relative(base).string();
  return relative.empty() || relative == "." || relative.starts_with("..") ? file : relative;
}

std::string TraceView::place(const trace::SourceLine& source) const {
  return source.known() ? path(source.file) + ":" + std::to_string(source.line) : std::string();
}

trace::SourceLine TraceView::source_of(std::int64_t site) const {
  // A backward operator has a line of its own only in the backward of a program's function and in a hook; else the line
  // that people look for is the forward one.
  const Site* const node = backward_node(site);
  if (node != nullptr && node->id != site) {
    const bool own_function = node->name.ends_with("Backward");
    for (const Site* at = this->site(site); at != nullptr && at->kind == trace::SiteKind::op; at = parent(*at)) {
      if (at->source.known() && !at->in_recompute && (own_function || has_line_beside(*at, node))) return at->source;
    }
  }
  for (const Site* at = forward_of(site); at != nullptr; at = parent(*at)) {
    if (at->source.known()) return at->source;
  }
  for (const Site* at = this->site(site); at != nullptr; at = parent(*at)) {
    if (at->source.known()) return at->source;
  }
  return {};
}

std::optional<std::string> TraceView::module_of(std::int64_t site) const {
  for (const Site* at = this->site(site); at != nullptr; at = parent(*at)) {
    if (at->has_module) return at->module;
  }
  for (const Site* at = forward_of(site); at != nullptr; at = parent(*at)) {
    if (at->has_module) return at->module;
  }
  return std::nullopt;
}

std::string TraceView::describe(std::int64_t site) const {
  const Site* const found = this->site(site);
  if (found == nullptr) return "an operation that was not seen";
  std::string text = place(source_of(site));
  const std::optional<std::string> module = module_of(site);
  if (module && !module->empty()) text += (text.empty() ? "" : " ") + *module;
  if (!found->name.empty()) text += (text.empty() ? "" : " ") + found->name;
  return text.empty() ? "an operation without a name" : text;
}

}  // namespace ampscope::analyzers
