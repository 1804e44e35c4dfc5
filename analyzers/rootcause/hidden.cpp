#include "analyzers/rootcause/hidden.h"

#include <algorithm>

namespace ampscope::analyzers {

const trace::Site* hidden_region(const TraceView& view, const trace::Site& site) {
  const auto& regions = view.trace().hidden_regions;
  if (regions.empty()) return nullptr;
  for (const trace::Site* at = view.parent(site); at != nullptr; at = view.parent(*at)) {
    if (at->kind == trace::SiteKind::op) continue;
    const bool known = std::any_of(regions.begin(), regions.end(),
                                   [&](const trace::HiddenRegion& region) { return region.name == at->name; });
    if (known) return at;
  }
  return nullptr;
}

}  // namespace ampscope::analyzers
