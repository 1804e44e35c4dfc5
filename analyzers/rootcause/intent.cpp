#include "analyzers/rootcause/intent.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "analyzers/rootcause/origin.h"

namespace ampscope::analyzers {

namespace {

/// What a mask that is added consists of: nothing beside its infinities but zeros.
bool only_zeros_beside(const trace::TensorStats& stats) noexcept {
  return !stats.has_finite() || stats.absmax == 0;
}

/// A tensor that nothing seen has computed, nor put a constant into: it came from outside, or was moved from what did.
bool may_be_data(const TraceView& view, const trace::NonfiniteEvent& event, const trace::TensorType& type) {
  if (type.requires_grad) return false;
  const trace::Site* const made_by = view.site(type.producer);
  if (made_by == nullptr) return true;
  if (event.kind != trace::OriginKind::input || writes_constant(made_by->name)) return false;
  const std::vector<std::int64_t> before = view.producers(made_by->id);
  return std::none_of(before.begin(), before.end(),
                      [&](std::int64_t maker) { return writes_constant(view.site(maker)->name); });
}

/// An operator that a mask of -inf has no business in, or that makes of -inf what no mask is for. A softmax, alone or
/// inside attention, is what masks are for.
bool no_place_for_mask(const trace::Site& site, const NonfiniteCounts& out) {
  if (op_kind(site.name) == OpKind::softmax || base_name(site.name).find("attention") != std::string_view::npos)
    return false;
  return op_kind(site.name) == OpKind::matmul || out.nan != 0;
}

bool only_negative_infinity(const trace::TensorStats& stats) noexcept {
  return stats.nan == 0 && stats.positive_infinity == 0 && stats.negative_infinity != 0;
}

/// CTC returns the logarithms of path probabilities beside its losses; those of impossible paths are -inf.
bool only_in_work_space(const trace::NonfiniteEvent& event, const trace::Site& site) {
  return base_name(site.name).find("ctc_loss") != std::string_view::npos && event.outputs.size() > 1 &&
         event.outputs.front().stats.nonfinite() == 0;
}

bool makes_it_on_purpose(const trace::NonfiniteEvent& event, const trace::Site& site) {
  const std::string_view base = base_name(site.name);
  // Uninitialised memory: its content means nothing until somebody writes it, and the writer is looked at then.
  if (base.starts_with("empty") || base.starts_with("new_empty") || base == "resize") return true;
  if (only_in_work_space(event, site)) return true;
  if (!writes_constant(site.name)) return false;
  const auto nonfinite = [](double value) { return !std::isfinite(value); };
  if (std::any_of(event.scalars.begin(), event.scalars.end(), nonfinite)) return true;
  if (std::any_of(site.scalars.begin(), site.scalars.end(), nonfinite)) return true;
  // full(-inf) without recorded scalars: a creation operator has no other way to a non-finite value than its constant.
  return op_kind(site.name) == OpKind::create && event.kind != trace::OriginKind::propagator;
}

}  // namespace

std::vector<Intent> judge_intent(const TraceView& view, std::span<const trace::NonfiniteEvent* const> events) {
  std::vector<Intent> intents;
  intents.reserve(events.size());
  std::set<std::int64_t> meant;  // sites whose output carries only what is meant
  const auto is_meant = [&](const trace::NonfiniteEvent& event, const trace::WitnessTensor& input) {
    const std::int64_t producer = input.type.producer;
    if (meant.contains(producer)) return true;
    // Written by something that was not seen: -inf and nothing else is what masks are made of.
    if (event.kind == trace::OriginKind::input) {
      return input.type.parameter == trace::none && only_negative_infinity(input.stats);
    }
    if (const trace::Site* const made_by = view.site(producer); made_by != nullptr) {
      if (!only_negative_infinity(input.stats)) return false;
      if (writes_constant(made_by->name)) return true;
      // What only selects (the largest of a row) is not checked: it hands on what was put there before it.
      if (view.totals(made_by->id).checked_calls != 0) return false;
      const std::vector<std::int64_t> before = view.producers(made_by->id);
      return std::any_of(before.begin(), before.end(), [&](std::int64_t maker) {
        return meant.contains(maker) || writes_constant(view.site(maker)->name);
      });
    }
    // A mask made before we looked, or a buffer: -inf and nothing else is what masks are made of.
    return input.type.parameter == trace::none && only_negative_infinity(input.stats);
  };
  // Events that hand on -inf which came with other values from somewhere unseen: the biases of attention, or data.
  std::map<std::int64_t, std::vector<std::size_t>> unseen_way;
  const auto way_of = [&](const trace::NonfiniteEvent& event) -> std::optional<std::vector<std::size_t>> {
    for (const trace::WitnessTensor& input : event.inputs) {
      if (!only_negative_infinity(input.stats) || input.type.parameter != trace::none) continue;
      const auto known = unseen_way.find(input.type.producer);
      if (known != unseen_way.end()) return known->second;
      if (may_be_data(view, event, input.type) && !only_zeros_beside(input.stats)) return std::vector<std::size_t>{};
    }
    return std::nullopt;
  };
  for (const trace::NonfiniteEvent* event : events) {
    const trace::Site* const site = view.site(event->site);
    const NonfiniteCounts out = output_counts(*event);
    Intent intent = Intent::fault;
    if (site != nullptr) {
      bool any_input = false;
      bool all_meant = true;
      for (const trace::WitnessTensor& input : event->inputs) {
        if (input.stats.nonfinite() == 0) continue;
        any_input = true;
        all_meant = all_meant && is_meant(*event, input);
      }
      if (makes_it_on_purpose(*event, *site) && (!any_input || all_meant)) {
        intent = Intent::intended;
      } else if (any_input && all_meant) {
        intent = out.nan == 0 ? Intent::intended : Intent::born;
        if (std::optional<std::vector<std::size_t>> way = way_of(*event); way) {
          if (no_place_for_mask(*site, out)) {
            intent = Intent::fault;
            for (const std::size_t before : *way)
              intents[before] = Intent::fault;
          } else if (intent == Intent::intended) {
            way->push_back(intents.size());
            for (const trace::Site* at = site; at != nullptr && at->kind == trace::SiteKind::op; at = view.parent(*at))
              unseen_way[at->id] = *way;
          }
        }
      }
    }
    if (intent == Intent::intended) {
      const trace::Site* level = site;
      while (level != nullptr && level->kind == trace::SiteKind::op) {
        meant.insert(level->id);
        level = view.parent(*level);
      }
    } else {
      // A site that both carries a mask and, in another call, a fault is judged by the fault.
      meant.erase(event->site);
    }
    intents.push_back(intent);
  }
  return intents;
}

}  // namespace ampscope::analyzers
