#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

constexpr int hops = 4;            ///< operators between the probabilities, their sum and the comparison
constexpr double near_one = 0.25;  ///< a sum further away from one is no sum of probabilities

/// What asks whether probabilities add up to one, and how far off they may be.
struct Check {
  std::int64_t site = trace::none;  ///< none: outside torch
  std::string what;
  double tolerance = 0;
};

/// Rows of probabilities that a site rounded, the worst of all sampled steps.
struct Rounded {
  std::int64_t site = trace::none;
  trace::DType dtype = trace::DType::unknown;
  double deviation = 0;
  double share = 0;  ///< of the rows
  std::int64_t rows = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

std::vector<Rounded> rounded_rows(const TraceView& view) {
  std::map<std::int64_t, Rounded> sites;
  for (const trace::WriteSample& write : view.trace().writes) {
    if (write.kind != trace::WriteKind::distribution || write.changed == 0) continue;
    const auto [entry, is_new] = sites.try_emplace(write.site);
    Rounded& rounded = entry->second;
    if (is_new) rounded.first = write.step;
    rounded.site = write.site;
    rounded.dtype = write.dtype;
    rounded.deviation = std::max(rounded.deviation, write.largest);
    rounded.share += static_cast<double>(write.changed);
    rounded.rows += write.concerned;
    rounded.last = write.step;
  }
  std::vector<Rounded> result;
  for (auto& [site, rounded] : sites) {
    rounded.share /= static_cast<double>(std::max<std::int64_t>(rounded.rows, 1));
    result.push_back(rounded);
  }
  return result;
}

/// Largest distance of a site's results from one; empty when they are no sums of probabilities.
std::optional<double> distance_from_one(const TraceView& view, std::int64_t site, bool last_only) {
  std::optional<double> distance;
  for (const trace::SiteNumerics* row : view.numerics(site)) {
    if (!row->stats.has_finite() || row->stats.nonfinite() != 0) return std::nullopt;
    const double above = std::abs(row->stats.max - 1);
    const double below = std::abs(row->stats.min - 1);
    const double here = last_only ? above : std::max(above, below);
    if (here > near_one) return std::nullopt;
    distance = std::max(distance.value_or(0), here);
  }
  return distance;
}

/// Visits what uses the result of `site`, nearest first.
template <typename Visit>
void for_consumers(const TraceView& view, std::int64_t site, Visit visit) {
  std::set<std::int64_t> seen = {site};
  std::vector<std::int64_t> front = {site};
  for (int hop = 0; hop < hops && !front.empty(); ++hop) {
    std::vector<std::int64_t> next;
    for (const std::int64_t at : front) {
      for (const std::int64_t consumer : view.consumers(at)) {
        if (!seen.insert(consumer).second) continue;
        if (visit(*view.site(consumer))) return;
        const std::string_view base = base_name(view.site(consumer)->name);
        const bool passes = base == "sub" || base == "rsub" || base == "abs" || base == "neg" || base == "max" ||
                            base == "amax" || op_kind(view.site(consumer)->name) == OpKind::cast ||
                            op_kind(view.site(consumer)->name) == OpKind::move;
        if (passes) next.push_back(consumer);
      }
    }
    front = std::move(next);
  }
}

std::optional<Check> comparison_after(const TraceView& view, std::int64_t sum) {
  std::optional<Check> found;
  for_consumers(view, sum, [&](const trace::Site& site) {
    const std::string_view base = base_name(site.name);
    const std::vector<double>& scalars = site.scalars;
    if (base == "lt" || base == "le" || base == "gt" || base == "ge") {
      // |sum - 1| < tolerance; a comparison of the sum itself with a number is none.
      if (!scalars.empty() && scalars.front() >= 0 && scalars.front() < near_one) {
        found = Check{site.id, view.describe(site.id), scalars.front()};
      }
    } else if (base == "isclose" || base == "allclose") {
      double tolerance = 0;
      for (std::size_t i = 0; i < std::min(scalars.size(), site.scalar_names.size()); ++i) {
        if (site.scalar_names[i] == "rtol" || site.scalar_names[i] == "atol") tolerance += scalars[i];
      }
      found = Check{site.id, view.describe(site.id), scalars.empty() ? 1e-5 : tolerance};
    } else if (base == "equal" || ((base == "eq" || base == "ne") && !scalars.empty() && scalars.front() == 1)) {
      found = Check{site.id, view.describe(site.id), 0};
    }
    return found.has_value();
  });
  return found;
}

/// A search in running sums of probabilities finds no place for a number above the last one.
std::optional<Check> search_after(const TraceView& view, std::int64_t running_sum) {
  std::optional<Check> found;
  for_consumers(view, running_sum, [&](const trace::Site& site) {
    const std::string_view base = base_name(site.name);
    if (base == "searchsorted" || base == "bucketize") found = Check{site.id, view.describe(site.id), 1e-5};
    return found.has_value();
  });
  return found;
}

/// What a library outside torch, or torch's own check of a distribution, says when it refuses probabilities.
std::optional<Check> refusal(const TraceView& view) {
  const auto& end = view.trace().end;
  if (!end || end->how != "exception") return std::nullopt;
  for (const char* words : {"Simplex()", "do not sum to 1", "sum to one", "sum to 1", "sum up to 1", "add up to 1"}) {
    if (end->detail.find(words) != std::string::npos) return Check{trace::none, end->detail.substr(0, 60), 0};
  }
  return std::nullopt;
}

const Rounded* source_of_rows(const TraceView& view, const std::vector<Rounded>& rows, std::int64_t site) {
  const std::vector<bool> before = view.ancestors(site);
  const Rounded* best = nullptr;
  for (const Rounded& rounded : rows) {
    const bool feeds = before[static_cast<std::size_t>(rounded.site)] ||
                       before[static_cast<std::size_t>(view.outermost_op(rounded.site)->id)];
    if (feeds && (best == nullptr || rounded.site > best->site)) best = &rounded;
  }
  return best;
}

bool has_half_input(const trace::Site& site) {
  return std::any_of(site.inputs.begin(), site.inputs.end(),
                     [](const trace::TensorType& input) { return trace::is_half(input.dtype); });
}

void report(const RuleContext& context, const Check& check, const Rounded& rounded, double deviation,
            std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  Finding finding = context.finding();
  const std::string type = trace::short_dtype_name(rounded.dtype);
  finding.culprit = context.culprit(rounded.site);
  finding.steps = {rounded.first, std::max(rounded.last, rounded.first),
                   std::max<std::int64_t>(view.totals(rounded.site).steps, 1)};
  finding.title = fmt::format("probabilities in {} miss their sum of one by {:.2g}", type, deviation);
  finding.message = fmt::format(
      "{} rounds each probability to {}; the sum of a row is up to {:.2g} away from one; {} ({:.2g} allowed).",
      view.describe(rounded.site), type, deviation, check.what, check.tolerance);
  if (rounded.rows > 0) {
    finding.message += fmt::format(" Of {} looked at, {} miss one by more than fp32 would.",
                                   plural(rounded.rows, "row"), share(rounded.share));
  }
  finding.proof = fmt::format("|sum - 1| = {:.2g} in {} · allowed {:.2g}", deviation, type, check.tolerance);
  finding.evidence = {{"deviation", deviation},
                      {"tolerance", check.tolerance},
                      {"share_of_rows", rounded.share},
                      {"check", check.what},
                      {"dtype", trace::dtype_name(rounded.dtype)}};
  finding.fix =
      "compute probabilities in fp32 and normalise them there: torch.softmax(logits, dim=-1, dtype=torch.float32); "
      "give "
      "Categorical the logits instead of probabilities";
  finding.fix_cpp = "torch::softmax(logits, -1, torch::kFloat)";
  findings.push_back(std::move(finding));
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const std::vector<Rounded> rows = rounded_rows(view);
  for (const trace::Site& site : view.trace().sites) {
    const std::string_view base = base_name(site.name);
    const bool running = base == "cumsum";
    if ((base != "sum" && !running) || site.phase == trace::Phase::backward) continue;
    const Rounded* const source = source_of_rows(view, rows, site.id);
    if (source == nullptr && !has_half_input(site)) continue;
    std::optional<double> distance = distance_from_one(view, site.id, running);
    if (!distance) continue;
    // Of running sums only the largest of all rows is known; a row that ends lower shows in its probabilities.
    if (running && source != nullptr) distance = std::max(*distance, source->deviation);
    const std::optional<Check> check = running ? search_after(view, site.id) : comparison_after(view, site.id);
    if (!check || *distance <= check->tolerance) continue;
    Rounded itself;
    itself.site = site.id;
    itself.dtype = site.inputs.empty() ? trace::DType::unknown : site.inputs.front().dtype;
    itself.first = std::max<std::int64_t>(view.totals(site.id).first_step, 0);
    itself.last = view.totals(site.id).last_step;
    report(context, *check, source != nullptr ? *source : itself, *distance, findings);
    return;
  }
  if (rows.empty()) return;
  if (const std::optional<Check> refused = refusal(view)) {
    // The last rows that were rounded before the program ended.
    const Rounded& latest = *std::max_element(rows.begin(), rows.end(), [&](const Rounded& a, const Rounded& b) {
      return view.totals(a.site).last_step != view.totals(b.site).last_step
                 ? view.totals(a.site).last_step < view.totals(b.site).last_step
                 : a.site < b.site;
    });
    report(context, *refused, latest, latest.deviation, findings);
  }
}

constexpr std::array needs = {Stream::ops, Stream::numerics};

}  // namespace

extern const Rule rule_amp511;
const Rule rule_amp511 = {
    .code = "AMP511",
    .name = "distribution-not-normalised",
    .family = Family::lost_precision,
    .severity = Severity::warning,
    .summary = "probabilities that were rounded to a half type miss a check that they add up to one",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
