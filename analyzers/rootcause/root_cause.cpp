#include "analyzers/rootcause/root_cause.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/core/exchange.h"
#include "analyzers/core/scale_dependence.h"
#include "analyzers/rootcause/chain.h"
#include "analyzers/rootcause/hidden.h"
#include "analyzers/rootcause/intent.h"
#include "analyzers/rootcause/scene.h"
#include "analyzers/rootcause/vanished.h"

namespace ampscope::analyzers {

namespace {

using trace::NonfiniteEvent;
using trace::OriginKind;
using trace::Phase;
using trace::Site;

struct Candidate {
  const NonfiniteEvent* event = nullptr;
  const Site* site = nullptr;
  Intent intent = Intent::fault;
  [[nodiscard]] bool backward() const noexcept { return site->phase == Phase::backward && !site->in_recompute; }
  bool scaling = false;  ///< the loss is multiplied by the loss scale here
  /// A call in which something began, as opposed to one that passed it on.
  [[nodiscard]] bool begins() const noexcept {
    return intent == Intent::born || kind_of(*event) != OriginKind::propagator;
  }
};

/// What sites depend on, found once for each: every bad step asks for the same few losses.
class Ancestry {
 public:
  explicit Ancestry(const TraceView& view) : view_(&view) {}
  [[nodiscard]] const TraceView& view() const noexcept { return *view_; }
  const std::vector<bool>& of(std::int64_t site) {
    const auto [entry, is_new] = known_.try_emplace(site);
    if (is_new) entry->second = view_->ancestors(site);
    return entry->second;
  }

 private:
  const TraceView* view_;
  std::map<std::int64_t, std::vector<bool>> known_;
};

/// Sites whose non-finite results of a step went nowhere: each call that took one made finite values of it (a softmax
/// of -inf, a division by infinity), or went nowhere itself.
std::set<std::int64_t> absorbed_sites(const TraceView& view, std::int64_t step,
                                      std::span<const NonfiniteEvent* const> events) {
  std::set<std::int64_t> taken;     // by a call that passed it on
  std::set<std::int64_t> absorbed;  // by a call that ended it
  // What hands values on unchanged is not checked, so it has no event of its own: what took its result took its input.
  const auto mark = [&](const NonfiniteEvent& event, std::set<std::int64_t>& into) {
    std::vector<std::int64_t> open;
    for (const trace::WitnessTensor& input : event.inputs) {
      if (input.stats.nonfinite() != 0 && input.type.producer != trace::none) open.push_back(input.type.producer);
    }
    while (!open.empty()) {
      const std::int64_t site = open.back();
      open.pop_back();
      if (!into.insert(site).second || view.totals(site).checked_calls != 0) continue;
      for (const std::int64_t producer : view.producers(site))
        open.push_back(producer);
    }
  };
  for (const NonfiniteEvent* event : view.absorbers()) {
    if (event->step == step) mark(*event, absorbed);
  }
  std::set<std::int64_t> nowhere;
  for (std::size_t i = events.size(); i-- > 0;) {
    const std::int64_t site = events[i]->site;
    if (absorbed.contains(site) && !taken.contains(site)) {
      nowhere.insert(site);
      mark(*events[i], absorbed);
    } else {
      mark(*events[i], taken);
    }
  }
  return nowhere;
}

/// What was kept, in a step that was well, of the call that made a tensor, or of one before it where the calls in
/// between only hand on and so are not looked at.
const NonfiniteEvent* earlier_event(const TraceView& view, std::int64_t producer, std::int64_t step) {
  std::set<std::int64_t> visited;
  std::vector<std::int64_t> open{producer};
  while (!open.empty()) {
    const std::int64_t site = open.back();
    open.pop_back();
    if (view.site(site) == nullptr || !visited.insert(site).second) continue;
    if (const NonfiniteEvent* const event = view.latest_harmless(site, step); event != nullptr) return event;
    if (view.totals(site).checked_calls != 0) continue;
    for (const std::int64_t before : view.producers(site))
      open.push_back(before);
  }
  return nullptr;
}

/// The events of a step, and before them what was kept in earlier steps of the sites that made their inputs.
std::vector<const NonfiniteEvent*> events_of(const TraceView& view, std::int64_t step) {
  const auto own = view.nonfinite_events(step);
  std::vector<const NonfiniteEvent*> events(own.begin(), own.end());
  std::set<std::int64_t> sites;
  for (const NonfiniteEvent* event : own)
    sites.insert(event->site);
  for (std::size_t i = 0; i < events.size(); ++i) {
    for (const trace::WitnessTensor& input : events[i]->inputs) {
      if (input.stats.nonfinite() == 0 || input.earlier_step) continue;
      // Infinity only: NaN is always looked at. And of steps that were well: what did harm is looked at again.
      const NonfiniteEvent* const earlier =
          input.stats.nan == 0 ? earlier_event(view, input.type.producer, step) : nullptr;
      if (earlier != nullptr && sites.insert(earlier->site).second) events.push_back(earlier);
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const auto* a, const auto* b) { return a->order < b->order; });
  return events;
}

/// Leaves out operators that met, inside another one, what that one's own kernel had made unseen (mse_loss squares
/// without an operator and hands the squares to sum): what comes from outside comes through the outer one, which knows.
void leave_to_outer(const TraceView& view, std::vector<Candidate>& found) {
  std::set<std::int64_t> sites;
  for (const Candidate& candidate : found)
    sites.insert(candidate.site->id);
  std::erase_if(found, [&](const Candidate& candidate) {
    if (candidate.event->kind != OriginKind::input) return false;
    const Site* outer = view.parent(*candidate.site);
    while (outer != nullptr && outer->kind == trace::SiteKind::op && !sites.contains(outer->id))
      outer = view.parent(*outer);
    return outer != nullptr && outer->kind == trace::SiteKind::op;
  });
}

std::vector<Candidate> candidates(const TraceView& view, std::int64_t step) {
  const std::vector<const NonfiniteEvent*> events = events_of(view, step);
  const std::vector<Intent> intents = judge_intent(view, events);
  const std::set<std::int64_t> nowhere = absorbed_sites(view, step, events);
  std::vector<Candidate> result;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Site* const site = view.site(events[i]->site);
    if (site != nullptr && intents[i] != Intent::intended && !nowhere.contains(site->id))
      result.push_back({events[i], site, intents[i], view.is_scaling_site(site->id)});
  }
  leave_to_outer(view, result);
  return result;
}

/// Adds what this step's own calls say about where their inputs came from: the graph of producers is that of each
/// site's first call, and a program takes other ways later (a term of the loss that begins at step 1000).
void connect_by_events(const TraceView& view, std::span<const Candidate> candidates, std::vector<bool>& feeds) {
  const auto feeds_loss = [&](const Site* site) {
    for (; site != nullptr && site->kind == trace::SiteKind::op; site = view.parent(*site)) {
      if (feeds[static_cast<std::size_t>(site->id)]) return true;
    }
    return false;
  };
  for (std::size_t i = candidates.size(); i-- > 0;) {
    const Candidate& candidate = candidates[i];
    if (candidate.backward() || !feeds_loss(candidate.site)) continue;
    for (const trace::WitnessTensor& input : candidate.event->inputs) {
      if (input.stats.nonfinite() == 0) continue;
      const Site* producer = view.site(input.type.producer);
      // What hands values on unchanged (a cast that has nothing to do, a view) is not checked and so is no candidate:
      // beyond it only the first call's graph leads further.
      if (producer != nullptr && view.totals(producer->id).checked_calls == 0) {
        const std::vector<bool> reached = view.ancestors(producer->id);
        for (std::size_t site = 0; site < reached.size(); ++site)
          feeds[site] = feeds[site] || reached[site];
      }
      for (; producer != nullptr && producer->kind == trace::SiteKind::op; producer = view.parent(*producer)) {
        feeds[static_cast<std::size_t>(producer->id)] = true;
      }
    }
    feeds[static_cast<std::size_t>(candidate.site->id)] = true;
  }
}

/// The earliest forward call among those that `feeds` marks (by site id): one in which something began before one that
/// only passed it on. Where nothing is known of who fed whom, the earliest whose result gradients can flow through.
const Candidate* first_among(std::span<const Candidate> candidates, const std::vector<bool>& feeds) {
  const Candidate* passing = nullptr;
  const Candidate* begun = nullptr;
  const Candidate* with_gradient = nullptr;
  const Candidate* first = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.backward()) break;
    const bool connected = !feeds.empty() && feeds[static_cast<std::size_t>(candidate.site->id)];
    if (connected && candidate.begins()) return &candidate;
    if (connected && passing == nullptr) passing = &candidate;
    if (passing == nullptr && begun == nullptr && candidate.begins() && candidate.site->grad_enabled)
      begun = &candidate;
    if (first == nullptr) first = &candidate;
    if (with_gradient == nullptr && candidate.site->grad_enabled) with_gradient = &candidate;
  }
  // What was passed on came from somewhere. Where a site stands for several calls (in C++ there are no lines to tell
  // them apart by), the graph shows the inputs of one of them only.
  if (passing != nullptr) return begun != nullptr ? begun : passing;
  return with_gradient != nullptr ? with_gradient : first;
}

const Candidate* first_before_loss(Ancestry& ancestry, std::span<const Candidate> candidates, std::int64_t step) {
  const TraceView& view = ancestry.view();
  if (!view.has_producers()) return first_among(candidates, {});
  std::vector<bool> feeds(view.trace().sites.size(), false);
  for (const trace::ProtocolEvent& event : view.events(step)) {
    if (event.kind != trace::EventKind::backward || view.site(event.site) == nullptr) continue;
    const std::vector<bool>& reached = ancestry.of(event.site);
    for (std::size_t i = 0; i < reached.size(); ++i)
      feeds[i] = feeds[i] || reached[i];
  }
  connect_by_events(view, candidates, feeds);
  // What the program writes into its parameters by itself. Where the producers of a parameter are known, they are those
  // of its first use.
  for (const Candidate& candidate : candidates) {
    if (candidate.site->phase == Phase::forward && overwrites_parameter(*candidate.event))
      feeds[static_cast<std::size_t>(candidate.site->id)] = true;
  }
  return first_among(candidates, feeds);
}

/// Between the operators that are seen of a compiled region lie kernels that are not, so that nothing shows who fed
/// whom. What an operator there met was made by an earlier one of the region, where one began.
const Candidate* begun_in_region(const TraceView& view, std::span<const Candidate> candidates, const Candidate& found) {
  if (kind_of(*found.event) != OriginKind::input) return &found;
  const Site* const region = hidden_region(view, *found.site);
  if (region == nullptr) return &found;
  for (const Candidate& candidate : candidates) {
    if (candidate.event->order >= found.event->order || candidate.backward()) continue;
    const bool began = candidate.intent == Intent::fault && kind_of(*candidate.event) == OriginKind::producer;
    if (began && hidden_region(view, *candidate.site) == region) return &candidate;
  }
  return &found;
}

/// A forward call with a non-finite result that the derivative computed at `site` works with.
const Candidate* forward_partner(const TraceView& view, std::span<const Candidate> candidates, const Site& site) {
  const Site* const forward = view.forward_of(site.id);
  if (forward == nullptr) return nullptr;
  std::set<std::int64_t> related{forward->id};
  for (const std::int64_t producer : view.producers(forward->id))
    related.insert(producer);
  for (const Candidate& candidate : candidates) {
    if (candidate.backward()) continue;
    // The node may belong to the inner operator and the event to the outer one, or the other way round.
    for (const Site* at = candidate.site; at != nullptr && at->kind == trace::SiteKind::op; at = view.parent(*at)) {
      if (related.contains(at->id)) return &candidate;
    }
    for (const Site* at = forward; at != nullptr && at->kind == trace::SiteKind::op; at = view.parent(*at)) {
      if (at->id == candidate.site->id) return &candidate;
    }
  }
  return nullptr;
}

/// Whether a smaller loss scale could have kept this backward call finite: fp16 that overflowed, not a division by zero
/// and not something fp32 cannot hold.
bool depends_on_scale(const TraceView& view, const Candidate& candidate) {
  if (candidate.scaling) return true;
  if (takes_no_gradient(view, *candidate.event)) return false;
  // Not finite in higher precision either: no scale is small enough.
  if (candidate.event->replay.done && !candidate.event->replay.finite) return false;
  const trace::DType dtype = compute_dtype(*candidate.event, *candidate.site);
  const bool to_half =
      std::any_of(candidate.event->outputs.begin(), candidate.event->outputs.end(),
                  [](const trace::WitnessTensor& output) { return output.type.dtype == trace::DType::float16; });
  if (dtype != trace::DType::float16 && !to_half) return false;
  const std::string_view base = base_name(candidate.site->name);
  const bool divides = base == "div" || base == "reciprocal" || base == "rsqrt" || base == "pow" || base == "sqrt";
  if (!divides) return true;
  // Finite in higher precision, so no zero was in the way (a gradient may well be zero in places), and what is left
  // once the scale is taken out fits.
  const double fits = trace::float_limits(trace::DType::float16).max * view.scale_at(candidate.event->step).value_or(1);
  if (candidate.event->replay.done && candidate.event->replay.absmax <= fits) return true;
  return std::none_of(candidate.event->inputs.begin(), candidate.event->inputs.end(),
                      [](const trace::WitnessTensor& input) { return input.looked_at && input.stats.zero != 0; });
}

/// Zeros and one other value that no gradient flows to: what a program multiplies by to leave things out.
bool is_mask(const trace::WitnessTensor& input) {
  if (!input.looked_at || input.type.requires_grad || input.stats.nonfinite() != 0 || input.stats.zero == 0)
    return false;
  if (!trace::is_floating(input.type.dtype)) return input.stats.absmax <= 1;
  return input.stats.min >= 0 && input.stats.exponents.counts.size() <= 1;
}

bool multiplies_by_mask(const TraceView& view, const Candidate& candidate) {
  const NonfiniteEvent& event = *candidate.event;
  if (candidate.backward() || event.times_zero == 0) return false;
  if (static_cast<std::uint64_t>(event.times_zero) != output_counts(event).total()) return false;
  // Dropout multiplies by chance: that a value met a zero says nothing about what was meant.
  const Site* const outer = view.outermost_op(candidate.site->id);
  if (outer != nullptr && outer->name.find("dropout") != std::string::npos) return false;
  const bool by_zero = std::any_of(event.scalars.begin(), event.scalars.end(), [](double value) { return value == 0; });
  return by_zero || std::any_of(event.inputs.begin(), event.inputs.end(), is_mask);
}

/// Whether the non-finite values that `from` took are those of `origin`, by the calls of this step: the graph of first
/// calls does not know a way that the program takes later only.
bool took_values_of(const TraceView& view, std::span<const Candidate> candidates, const Candidate& from,
                    const Candidate& origin) {
  // The event may belong to the inner operator and the tensor to the outer one.
  std::set<std::int64_t> origins;
  for (const Site* at = origin.site; at != nullptr && at->kind == trace::SiteKind::op; at = view.parent(*at))
    origins.insert(at->id);
  std::set<std::int64_t> visited;
  std::vector<const NonfiniteEvent*> open{from.event};
  while (!open.empty()) {
    const NonfiniteEvent& event = *open.back();
    open.pop_back();
    for (const trace::WitnessTensor& input : event.inputs) {
      if (input.stats.nonfinite() == 0) continue;
      for (const Site* at = view.site(input.type.producer); at != nullptr && at->kind == trace::SiteKind::op;
           at = view.parent(*at)) {
        if (origins.contains(at->id)) return true;
        if (!visited.insert(at->id).second) break;
        for (const Candidate& candidate : candidates) {
          if (candidate.site->id == at->id) open.push_back(candidate.event);
        }
      }
    }
  }
  return false;
}

Origin make_origin(const TraceView& view, const Candidate& candidate, std::int64_t step, std::size_t events);

bool same_tensor(const trace::TensorType& a, const trace::TensorType& b) {
  return a.producer == b.producer && a.dtype == b.dtype && a.shape == b.shape;
}

/// Whether `found` divides by what was computed from the zeros that `product` multiplies by: an adjacency matrix and
/// its degrees. Those zeros were not put there to remove anything.
bool divides_by_mask(Ancestry& ancestry, const Candidate& product, const Candidate& found) {
  if (!divides_by_zero(make_origin(ancestry.view(), found, found.event->step, 0))) return false;
  const std::vector<bool>& before = ancestry.of(found.site->id);
  const auto& sites = ancestry.view().trace().sites;
  return std::any_of(sites.begin(), sites.end(), [&](const Site& site) {
    if (!before[static_cast<std::size_t>(site.id)]) return false;
    return std::any_of(product.event->inputs.begin(), product.event->inputs.end(), [&](const auto& mask) {
      return is_mask(mask) && std::any_of(site.inputs.begin(), site.inputs.end(), [&](const trace::TensorType& input) {
               return same_tensor(input, mask.type);
             });
    });
  });
}

/// Whether wider arithmetic would have kept finite what `found` made of finite values: it overflowed a half type, or
/// met a zero that a half type had made.
bool lost_by_precision(const TraceView& view, const Candidate& found) {
  const NonfiniteEvent& event = *found.event;
  if (kind_of(event) != OriginKind::producer || found.intent == Intent::born) return false;
  if (event.replay.done && event.replay.finite) return trace::is_half(compute_dtype(event, *found.site));
  const Loss loss = find_loss(view, event, *found.site);
  return loss.what != Vanished::nothing && loss.claim >= Claim::supported && !loss.in_fp32;
}

/// The multiplication by a mask that was to remove what `found` made, and does not; null when there is none, and where
/// the mask would have had nothing to remove in fp32.
const Candidate* failed_mask(Ancestry& ancestry, std::span<const Candidate> candidates, const Candidate& found) {
  if (lost_by_precision(ancestry.view(), found)) return nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.event->order < found.event->order || !multiplies_by_mask(ancestry.view(), candidate)) continue;
    if (&candidate != &found && divides_by_mask(ancestry, candidate, found)) continue;
    if (&candidate == &found || ancestry.of(candidate.site->id)[static_cast<std::size_t>(found.site->id)] ||
        took_values_of(ancestry.view(), candidates, candidate, found)) {
      return &candidate;
    }
  }
  return nullptr;
}

bool can_be_nonfinite(const trace::TensorType& type) {
  return trace::is_floating(type.dtype) || type.dtype == trace::DType::complex64 ||
         type.dtype == trace::DType::complex128 || type.dtype == trace::DType::unknown;
}

struct Blame {
  const Site* site = nullptr;
  bool from_outside = false;  ///< nothing that can make a non-finite value lies between the call and its data
};

/// Goes back from a call that only passed something on over operators whose outputs were not checked, to the first of
/// them that can make a non-finite value.
Blame blame_unchecked(const TraceView& view, const Candidate& candidate, std::int64_t step) {
  Blame blame{candidate.site, true};
  std::set<std::int64_t> visited;
  std::vector<std::int64_t> open;
  for (const trace::WitnessTensor& input : candidate.event->inputs) {
    if (input.stats.nonfinite() != 0) open.push_back(input.type.producer);
  }
  while (!open.empty()) {
    const Site* const site = view.site(open.back());
    open.pop_back();
    if (site == nullptr || !visited.insert(site->id).second) continue;
    if (view.totals(site->id).checked_calls != 0) {
      // Finite when it was made. What was made in an earlier step, or once and is used in later ones, may have been
      // written to since, by what nobody looks at (an assignment into the data).
      const trace::SiteTotals& made = view.totals(site->id);
      const bool kept = made.steps == 1 && made.last_step < view.totals(candidate.site->id).last_step;
      if (made.last_step >= step && !kept) blame.from_outside = false;
      continue;
    }
    // An index or a mask holds no infinity, and nothing that goes into it comes out of it as one.
    if (!site->outputs.empty() && std::none_of(site->outputs.begin(), site->outputs.end(), can_be_nonfinite)) continue;
    const OpKind kind = op_kind(site->name);
    if (kind != OpKind::move && kind != OpKind::create && kind != OpKind::random) {
      blame = {site, false};
    }
    for (const std::int64_t producer : view.producers(site->id))
      open.push_back(producer);
  }
  blame.from_outside = blame.from_outside && !visited.empty();
  return blame;
}

bool by_design(std::span<const SkipAnalysis> scalers, std::int64_t step) {
  bool known = false;
  for (const SkipAnalysis& scaler : scalers) {
    const Skip* const skip = scaler.at_step(step);
    if (skip == nullptr) continue;
    known = true;
    if (!skip->by_design()) return false;
  }
  return known;
}

Origin make_origin(const TraceView& view, const Candidate& candidate, std::int64_t step, std::size_t events) {
  Origin origin;
  origin.event = candidate.event;
  origin.site = candidate.site;
  origin.kind = kind_of(*candidate.event);
  origin.from_intended_infinity = candidate.intent == Intent::born;
  if (!candidate.begins()) {
    const Blame blame = blame_unchecked(view, candidate, step);
    origin.site = blame.site;
    origin.kind = OriginKind::unknown;
    // Or made in an earlier step, before anything looked: a tensor that the program keeps, such as its data.
    if (blame.from_outside || view.totals(origin.site->id).last_step < step) {
      origin.site = candidate.site;
      origin.kind = OriginKind::input;
    }
  }
  if (origin.kind == OriginKind::input) {
    for (const trace::WitnessTensor& input : candidate.event->inputs) {
      if (input.stats.nonfinite() != 0 && input.type.parameter != trace::none) origin.parameter = input.type.parameter;
    }
  }
  origin.op = op_kind(origin.site->name);
  origin.phase = origin.kind == OriginKind::input && origin.parameter == trace::none ? Phase::data : origin.site->phase;
  origin.outcome = view.outcome(step);
  origin.steps = {step, step, 1};
  origin.victims = static_cast<std::int64_t>(events) - 1;
  return origin;
}

Origin make_masked_origin(const TraceView& view, const Candidate& mask, const Candidate& born, std::int64_t step,
                          std::size_t events) {
  Origin origin;
  origin.event = mask.event;
  origin.site = mask.site;
  origin.op = op_kind(mask.site->name);
  origin.phase = mask.site->phase;
  origin.kind = OriginKind::propagator;
  origin.masked = true;
  if (&born != &mask) origin.born_in = born.event;
  origin.outcome = view.outcome(step);
  origin.steps = {step, step, 1};
  origin.victims = static_cast<std::int64_t>(events) - 1;
  return origin;
}

/// A call that wrote non-finite values over a weight that was finite; null when the step has none. Rows of a weight
/// that no batch uses never show it in a loss.
const Candidate* spoils_weight(std::span<const Candidate> candidates) {
  const auto found = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& candidate) {
    return candidate.site->phase != Phase::backward && overwrites_parameter(*candidate.event);
  });
  return found != candidates.end() ? &*found : nullptr;
}

/// Where the values came from that `write` puts into a weight, although loss and gradients of the step were finite.
std::optional<Origin> origin_of_write(const TraceView& view, std::span<const Candidate> candidates, std::int64_t step) {
  const Candidate* const write = spoils_weight(candidates);
  if (write == nullptr) return std::nullopt;
  for (const Candidate& candidate : candidates) {
    if (candidate.site->phase != write->site->phase || !candidate.begins()) continue;
    if (&candidate == write || took_values_of(view, candidates, *write, candidate))
      return make_origin(view, candidate, step, candidates.size());
  }
  return std::nullopt;
}

/// The origin of what went wrong in `step`, if anything did that the scaler does not handle by design.
std::optional<Origin> origin_in(Ancestry& ancestry, std::span<const SkipAnalysis> scalers, std::int64_t step) {
  const TraceView& view = ancestry.view();
  const StepOutcome outcome = view.outcome(step);
  const std::vector<Candidate> all = candidates(view, step);
  if (all.empty()) return std::nullopt;
  if (!outcome.bad()) return origin_of_write(view, all, step);
  if (outcome.loss_nonfinite) {
    const Candidate* const first = first_before_loss(ancestry, all, step);
    if (first == nullptr) return std::nullopt;
    const Candidate* const found = begun_in_region(view, all, *first);
    // A softmax over nothing but -inf: to select instead of multiplying would leave NaN in the gradients.
    const bool empty_softmax = op_kind(found->site->name) == OpKind::softmax;
    if (const Candidate* const mask = failed_mask(ancestry, all, *found); mask != nullptr && !empty_softmax) {
      return make_masked_origin(view, *mask, *found, step, all.size());
    }
    return make_origin(view, *found, step, all.size());
  }
  // Found and dropped by the program itself: it neither skipped through a scaler nor stepped.
  if (!outcome.skipped && !outcome.applied_nonfinite) return std::nullopt;
  const auto birth = std::find_if(all.begin(), all.end(), [](const Candidate& c) { return c.backward() || c.scaling; });
  if (birth == all.end()) {
    if (std::optional<Origin> written = origin_of_write(view, all, step)) return written;
    if (by_design(scalers, step)) return std::nullopt;
    const Candidate* const found = first_before_loss(ancestry, all, step);
    return found != nullptr ? std::optional(make_origin(view, *found, step, all.size())) : std::nullopt;
  }
  const Candidate* const partner = birth->scaling ? nullptr : forward_partner(view, all, *birth->site);
  // A derivative that met a non-finite saved value is the victim of the forward call that made it.
  if (partner != nullptr && birth->event->kind == OriginKind::propagator) {
    const Candidate* const first = first_among(all, ancestry.of(partner->site->id));
    return make_origin(view, *first, step, all.size());
  }
  // Brought by another process, which skips as this one does.
  if (is_collective(*view.outermost_op(birth->site->id)) && outcome.skipped && by_design(scalers, step)) {
    return std::nullopt;
  }
  // The scale's own overflow: harmless one by one, and where it does not end the scale itself is what to talk about.
  if (outcome.skipped && depends_on_scale(view, *birth)) return std::nullopt;
  Origin origin = make_origin(view, *birth, step, all.size());
  if (partner != nullptr) origin.forward_event = partner->event;
  return origin;
}

/// Whether an origin that shows after an earlier one is one of its own. Later steps keep fewer of their calls, so only
/// a call that began something from finite inputs, or data, is proof of it.
bool independent(const Origin& origin) {
  if (origin.from_intended_infinity || origin.masked || origin.kind == OriginKind::producer) return true;
  if (origin.kind != OriginKind::input || origin.parameter != trace::none) return false;
  return std::none_of(origin.event->inputs.begin(), origin.event->inputs.end(), [](const trace::WitnessTensor& input) {
    return input.stats.nonfinite() != 0 && input.type.requires_grad;
  });
}

void extend(Origin& origin, std::int64_t step) {
  origin.steps.last = std::max(origin.steps.last, step);
  ++origin.steps.count;
}

void collect_unreached(const TraceView& view, RootCause& result) {
  std::set<std::int64_t> sites;
  for (const Origin& origin : result.origins)
    sites.insert(origin.event->site);
  std::int64_t step = trace::none;
  for (const NonfiniteEvent& event : view.trace().nonfinite_events) {
    if (event.step == step || event.kind == OriginKind::absorber) continue;
    step = event.step;
    if (view.outcome(step).bad()) continue;
    for (const Candidate& candidate : candidates(view, step)) {
      if (candidate.begins() && sites.insert(candidate.site->id).second) result.unreached.push_back(candidate.event);
    }
  }
}

}  // namespace

RootCause find_root_cause(const TraceView& view, std::span<const SkipAnalysis> scalers) {
  RootCause result;
  Ancestry ancestry(view);
  bool poisoned = false;
  std::set<std::int64_t> steps;
  for (const auto& [step, outcome] : view.outcomes())
    steps.insert(step);
  for (const NonfiniteEvent& event : view.trace().nonfinite_events)
    steps.insert(event.step);
  for (const std::int64_t step : steps) {
    const StepOutcome outcome = view.outcome(step);
    if (!outcome.bad()) {
      // What becomes of the weights only shows in their own values here, and only once: they are non-finite then.
      if (std::optional<Origin> found = result.origins.empty() ? origin_in(ancestry, scalers, step) : std::nullopt) {
        found->chain = build_chain(view, *found, step);
        result.origins.push_back(std::move(*found));
        poisoned = true;
      }
      continue;
    }
    const bool harmless = !outcome.loss_nonfinite && outcome.skipped && by_design(scalers, step);
    if (!result.origins.empty() && (poisoned || view.nonfinite_events(step).empty())) {
      // Of a site that was bad before only the first call is kept, so a later bad step without events is more of the
      // same.
      if (!harmless && (outcome.loss_nonfinite || outcome.skipped || outcome.applied_nonfinite)) {
        extend(result.origins.front(), step);
      }
      continue;
    }
    std::optional<Origin> found = origin_in(ancestry, scalers, step);
    if (found) {
      // An operator at the edge of its domain fails in one step, and its derivative in another.
      const Site* const forward = view.forward_of(found->site->id);
      const auto known = std::find_if(result.origins.begin(), result.origins.end(), [&](const Origin& origin) {
        return origin.site == found->site || (forward != nullptr && origin.site == forward);
      });
      if (known != result.origins.end()) {
        extend(*known, step);
      } else if (result.origins.empty() || independent(*found)) {
        found->chain = build_chain(view, *found, step);
        result.origins.push_back(std::move(*found));
      } else {
        extend(result.origins.front(), step);
      }
    } else if (!harmless && !result.origins.empty()) {
      extend(result.origins.front(), step);
    }
    const bool reached_weights = outcome.applied_nonfinite || (outcome.loss_nonfinite && outcome.gradients_nonfinite &&
                                                               outcome.stepped && !outcome.skipped);
    if (!result.origins.empty() && reached_weights) poisoned = true;
  }
  collect_unreached(view, result);
  return result;
}

}  // namespace ampscope::analyzers
