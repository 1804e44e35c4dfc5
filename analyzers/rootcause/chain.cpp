#include "analyzers/rootcause/chain.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

constexpr std::size_t most_links_between = 3;

ChainLink link_of(const TraceView& view, const trace::NonfiniteEvent& event, const trace::Site& site,
                  std::string note) {
  ChainLink link;
  link.step = event.step;
  link.op = site.name;
  link.phase = site.phase;
  link.module = view.module_of(site.id).value_or("");
  if (const trace::SourceLine source = view.source_of(site.id); source.known()) link.source = source;
  link.dtype = compute_dtype(event, site);
  link.input_absmax = input_absmax(event);
  for (const trace::WitnessTensor& output : event.outputs) {
    if (output.looked_at) link.output_absmax = std::max(link.output_absmax.value_or(0), output.stats.absmax);
  }
  link.nonfinite = static_cast<std::int64_t>(output_counts(event).total());
  link.note = std::move(note);
  return link;
}

/// Sites from `start` to the first loss, the shortest way along what used what; empty when there is none.
std::vector<std::int64_t> way_to_loss(const TraceView& view, std::int64_t start) {
  std::map<std::int64_t, std::int64_t> came_from{{start, trace::none}};
  std::vector<std::int64_t> open{start};
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (view.is_loss_site(open[i])) {
      std::vector<std::int64_t> way;
      for (std::int64_t at = open[i]; at != trace::none; at = came_from[at])
        way.push_back(at);
      std::reverse(way.begin(), way.end());
      return way;
    }
    for (const std::int64_t consumer : view.consumers(open[i])) {
      if (came_from.emplace(consumer, open[i]).second) open.push_back(consumer);
    }
  }
  return {};
}

std::string birth_note(const Origin& origin) {
  if (origin.kind == trace::OriginKind::input) return "first used here";
  if (output_counts(*origin.event).infinite() == 0) return "makes NaN";
  // 1 / 0 and log(0) are infinite whatever the format.
  const bool pole = divides_by_zero(origin) || (origin.event->replay.done && !origin.event->replay.finite);
  return pole ? "makes infinity" : "overflows";
}

}  // namespace

std::vector<ChainLink> build_chain(const TraceView& view, const Origin& origin, std::int64_t step) {
  std::vector<ChainLink> chain;
  chain.push_back(link_of(view, *origin.event, *origin.site, birth_note(origin)));

  std::map<std::int64_t, const trace::NonfiniteEvent*> seen;
  for (const trace::NonfiniteEvent* event : view.nonfinite_events(step))
    seen.emplace(event->site, event);
  if (origin.outcome.loss_nonfinite && origin.phase != trace::Phase::backward) {
    std::vector<std::int64_t> way = way_to_loss(view, origin.event->site);
    // What a person calls the loss is the value before it was scaled.
    if (way.size() > 2 && view.is_scaling_site(way.back())) way.pop_back();
    std::int64_t loss = way.empty() ? trace::none : way.back();
    std::vector<std::int64_t> between;
    for (const std::int64_t site : way) {
      if (site != origin.event->site && site != loss && seen.contains(site)) between.push_back(site);
    }
    if (between.size() > most_links_between) between.resize(most_links_between);
    for (const std::int64_t site : between)
      chain.push_back(link_of(view, *seen[site], *view.site(site), "passes on"));
    if (loss == trace::none) {
      const auto known = std::find_if(view.loss_sites().begin(), view.loss_sites().end(),
                                      [&](std::int64_t site) { return seen.contains(site); });
      if (known != view.loss_sites().end()) loss = *known;
    }
    if (loss != trace::none && loss != origin.event->site) {
      if (seen.contains(loss)) {
        chain.push_back(link_of(view, *seen[loss], *view.site(loss), "loss"));
      } else if (!origin.outcome.cut_short) {
        ChainLink link;
        link.step = step;
        link.op = view.site(loss)->name;
        link.phase = view.site(loss)->phase;
        link.module = view.module_of(loss).value_or("");
        if (const trace::SourceLine source = view.source_of(loss); source.known()) link.source = source;
        link.dtype = view.site(loss)->compute_dtype;
        link.note = "loss";
        chain.push_back(std::move(link));
      }
    }
  }

  const auto gradients = view.nonfinite_gradients(step);
  if (!gradients.empty()) {
    const trace::NonfiniteGradient& worst =
        **std::max_element(gradients.begin(), gradients.end(),
                           [](const auto* a, const auto* b) { return a->nan + a->infinite < b->nan + b->infinite; });
    ChainLink link;
    link.step = step;
    link.op = "gradient";
    link.phase = trace::Phase::backward;
    if (const trace::Parameter* const parameter = view.parameter(worst.parameter); parameter != nullptr) {
      link.module = parameter->name;
      link.dtype = parameter->dtype;
    }
    link.nonfinite = worst.nan + worst.infinite;
    link.note = gradients.size() == 1 ? "gradient" : "gradient, and " + std::to_string(gradients.size() - 1) + " more";
    chain.push_back(std::move(link));
  }
  if (origin.outcome.skipped || origin.outcome.applied_nonfinite) {
    ChainLink link;
    link.step = step;
    link.op = view.trace().optimizers.empty() ? "update by hand" : "Optimizer.step";
    link.phase = trace::Phase::optimizer;
    link.note = origin.outcome.skipped ? "skipped step" : "goes into the weights";
    chain.push_back(std::move(link));
  }
  return chain;
}

}  // namespace ampscope::analyzers
