#include "analyzers/core/scalars.h"

#include "analyzers/core/op_kinds.h"

namespace ampscope::analyzers {

double factor_of(const trace::Site& site) noexcept {
  const std::string_view base = base_name(site.name);
  const bool divides = base == "div" || base == "foreach_div";
  if (!divides && base != "mul" && base != "foreach_mul") return 0;
  if (site.scalars.size() != 1 || site.scalars.front() == 0) return 0;
  return divides ? 1 / site.scalars.front() : site.scalars.front();
}

}  // namespace ampscope::analyzers
