#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rounding.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/core/scalars.h"

namespace ampscope::analyzers {

namespace {

constexpr std::int64_t few = 16;  ///< different values from which a regular sequence is taken for positions

struct Merged {
  const trace::Site* site = nullptr;
  trace::DType dtype = trace::DType::unknown;
  std::int64_t distinct = 0;
  std::int64_t kept = 0;
  double largest = 0;
  std::int64_t step = 0;
};

/// Whether enough is lost to matter: one pair in a thousand is not.
bool notable(std::int64_t distinct, std::int64_t kept, double min_share) {
  const std::int64_t lost = distinct - kept;
  return lost >= 2 && static_cast<double>(lost) >= min_share * static_cast<double>(distinct);
}

/// Sequences that are made in a narrow type at once: arange(2048, dtype=bfloat16).
std::optional<Merged> made_narrow(const TraceView& view, const trace::Site& site, double min_share) {
  const std::string_view base = base_name(site.name);
  if ((base != "arange" && base != "linspace") || site.outputs.empty()) return std::nullopt;
  const trace::DType dtype = site.outputs.front().dtype;
  const trace::Site* const outer = view.parent(site);
  if (!trace::is_half(dtype) || (outer != nullptr && base_name(outer->name) == base)) return std::nullopt;
  const std::vector<std::int64_t>& shape = site.outputs.front().shape;
  if (shape.size() != 1 || shape.front() < few) return std::nullopt;
  const std::int64_t count = std::min<std::int64_t>(shape.front(), 1 << 20);
  const double start = scalar_named(site, "start").value_or(0);
  double step = scalar_named(site, "step").value_or(1);
  if (base == "linspace")
    step = (scalar_named(site, "end").value_or(1) - start) / static_cast<double>(std::max<std::int64_t>(count - 1, 1));
  if (step == 0) return std::nullopt;
  Merged merged{&site, dtype, count, 0, 0, 0};
  double last = std::nan("");
  for (std::int64_t i = 0; i < count; ++i) {
    const double exact = start + static_cast<double>(i) * step;
    const double value = round_to(dtype, exact);
    if (value != last) ++merged.kept;
    last = value;
    merged.largest = std::max(merged.largest, std::abs(exact));
  }
  merged.step = std::max<std::int64_t>(view.totals(site.id).first_step, 0);
  return notable(merged.distinct, merged.kept, min_share) ? std::optional(merged) : std::nullopt;
}

/// Whether what a site makes is used to tell things apart: compared, looked up, turned into an angle.
bool tells_apart(const TraceView& view, std::int64_t site) {
  std::vector<std::int64_t> front = {site};
  for (int hop = 0; hop < 4; ++hop) {
    std::vector<std::int64_t> next;
    for (const std::int64_t at : front) {
      for (const std::int64_t consumer : view.consumers(at)) {
        const trace::Site& user = *view.site(consumer);
        const std::string_view base = base_name(user.name);
        for (const std::string_view name : {"eq", "ne", "sin", "cos", "embedding", "index", "index_select", "gather",
                                            "one_hot", "bucketize", "searchsorted", "unique"}) {
          if (base == name) return true;
        }
        // Back to integers: they are to be the same ones.
        const bool back = op_kind(user.name) == OpKind::cast && !user.outputs.empty() &&
                          user.outputs.front().dtype == trace::DType::int64;
        if (back) return true;
        if (base == "mul" || base == "div" || base == "outer" || op_kind(user.name) == OpKind::move ||
            op_kind(user.name) == OpKind::cast) {
          next.push_back(consumer);
        }
      }
    }
    front = std::move(next);
  }
  return false;
}

/// Numbers that count something and are converted: arange(4096).to(bfloat16), ids.half().
std::vector<Merged> converted(const TraceView& view, double min_share) {
  std::map<std::int64_t, Merged> sites;
  for (const trace::WriteSample& write : view.trace().writes) {
    if (write.kind != trace::WriteKind::cast || write.distinct < few) continue;
    if (!notable(write.distinct, write.distinct_kept, min_share)) continue;
    if (!write.evenly_spaced && !(write.whole && tells_apart(view, write.site))) continue;
    const trace::Site* const outer = view.outermost_op(write.site);
    if (outer == nullptr) continue;
    const auto [entry, is_new] = sites.try_emplace(outer->id);
    Merged& merged = entry->second;
    if (!is_new && merged.distinct - merged.kept >= write.distinct - write.distinct_kept) continue;
    merged = {outer,
              write.dtype,
              write.distinct,
              write.distinct_kept,
              std::max(std::abs(write.largest), std::abs(write.smallest)),
              is_new ? write.step : merged.step};
  }
  std::vector<Merged> result;
  result.reserve(sites.size());
  for (const auto& [site, merged] : sites)
    result.push_back(merged);
  return result;
}

void report(const RuleContext& context, const Merged& merged, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const trace::Site* const site = merged.site;
  const std::string type = trace::short_dtype_name(merged.dtype);
  const double exact = std::ldexp(1.0, trace::float_limits(merged.dtype).significand_bits);
  Finding finding = context.finding();
  finding.culprit = context.culprit(site->id);
  const trace::SiteTotals& totals = view.totals(merged.site->id);
  finding.steps = {merged.step, std::max(totals.last_step, merged.step), std::max<std::int64_t>(totals.steps, 1)};
  finding.title = fmt::format("positions or ids become equal in {}: {} of {} survive", type, count_of(merged.kept),
                              count_of(merged.distinct));
  finding.message = fmt::format(
      "{} writes numbers up to {} in {}, which holds whole numbers exactly up to {} only; of {} different values {} "
      "are "
      "left.",
      view.describe(site->id), number(merged.largest), type, number(exact), count_of(merged.distinct),
      count_of(merged.kept));
  finding.proof = fmt::format("{} different values, {} in {} · largest {}", count_of(merged.distinct),
                              count_of(merged.kept), type, number(merged.largest));
  finding.evidence = {{"distinct", static_cast<double>(merged.distinct)},
                      {"distinct_kept", static_cast<double>(merged.kept)},
                      {"largest", merged.largest},
                      {"exact_up_to", exact},
                      {"dtype", trace::dtype_name(merged.dtype)}};
  finding.fix =
      "keep positions, ids and time steps in integers or fp32 until after the sine, the lookup or the division: "
      "torch.arange(n, dtype=torch.float32), and with torch.autocast(device_type, enabled=False) around it";
  findings.push_back(std::move(finding));
}

/// Angles so large that neighbouring values of the type lie a radian or more apart.
void report_angle(const RuleContext& context, const trace::Site& site, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const std::string_view base = base_name(site.name);
  if ((base != "sin" && base != "cos") || site.phase == trace::Phase::backward || site.inputs.empty()) return;
  const trace::DType dtype = site.inputs.front().dtype;
  if (!trace::is_half(dtype)) return;
  const double limit = std::ldexp(1.0, trace::float_limits(dtype).significand_bits - 1);
  for (const std::int64_t producer : view.producers(site.id)) {
    for (const trace::SiteNumerics* row : view.numerics(producer)) {
      if (row->stats.absmax < limit) continue;
      const std::string type = trace::short_dtype_name(dtype);
      Finding finding = context.finding();
      finding.culprit = context.culprit(site.id);
      const trace::SiteTotals& totals = view.totals(site.id);
      finding.steps = {row->step, std::max(totals.last_step, row->step), std::max<std::int64_t>(totals.steps, 1)};
      finding.title = fmt::format("angles up to {} have no phase left in {}", number(row->stats.absmax), type);
      finding.message = fmt::format(
          "{} takes the {} of values up to {}, where neighbouring numbers of {} are a radian or more apart: time steps "
          "or positions that differ give the same value.",
          view.describe(site.id), base, number(row->stats.absmax), type);
      finding.proof = fmt::format("largest angle {} · {} has steps of a radian from {}", number(row->stats.absmax),
                                  type, number(limit));
      finding.evidence = {
          {"largest", row->stats.absmax}, {"steps_of_one_from", limit}, {"dtype", trace::dtype_name(dtype)}};
      finding.fix = "compute the angles in fp32 and cast the sine: (t.float() * frequencies).sin().to(x.dtype)";
      findings.push_back(std::move(finding));
      return;
    }
  }
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const double min_share = context.parameter("min_share");
  for (const trace::Site& site : view.trace().sites) {
    if (const std::optional<Merged> merged = made_narrow(view, site, min_share)) report(context, *merged, findings);
  }
  for (const Merged& merged : converted(view, min_share)) {
    const bool told = std::any_of(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.culprit.site == merged.site->id; });
    if (!told) report(context, merged, findings);
  }
  for (std::size_t i = 0; findings.empty() && i < view.trace().sites.size(); ++i)
    report_angle(context, view.trace().sites[i], findings);
}

constexpr std::array needs = {Stream::ops, Stream::numerics};
constexpr std::array parameters = {
    ParameterSpec{"min_share", 0.01, 0.0001, 1, false,
                  "share of the different values that is lost, from which it is reported"},
};

}  // namespace

extern const Rule rule_amp508;
const Rule rule_amp508 = {
    .code = "AMP508",
    .name = "index-precision-lost",
    .family = Family::lost_precision,
    .severity = Severity::error,
    .summary = "positions, ids or time steps are written in a type that cannot tell them apart",
    .needs = needs,
    .parameters = parameters,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
