#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

bool solves(std::string_view base) {
  static constexpr std::array names = {"linalg_solve",     "linalg_inv",        "linalg_lstsq",   "linalg_cholesky",
                                       "cholesky",         "inverse",           "linalg_ldl",     "linalg_pinv",
                                       "linalg_lu",        "lu_solve",          "cholesky_solve", "cholesky_inverse",
                                       "triangular_solve", "linalg_tensorsolve"};
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return base.starts_with(name); });
}

bool solves_backward(std::string_view node) {
  static constexpr std::array names = {
      "LinalgSolve", "LinalgInv", "Inverse",      "LinalgCholesky",        "Cholesky",
      "LinalgLu",    "LuSolve",   "LinalgPinv",   "LinalgSolveTriangular", "TriangularSolve",
      "LinalgLstsq", "LinalgDet", "LinalgSlogdet"};
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return node.starts_with(name); });
}

Claim claim(const RuleContext& context, const Origin& origin) {
  if (!made_here(origin) || finite_when_wider(*origin.event)) return Claim::none;
  const trace::Site* const outer = context.view().outermost_op(origin.site->id);
  const bool solve = solves(base_name(origin.site->name)) || (outer != nullptr && solves(base_name(outer->name)));
  if (!solve && !solves_backward(node_of(context.view(), origin))) return Claim::none;
  return nonfinite_when_wider(*origin.event) ? Claim::proven : Claim::supported;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const bool backward = origin.phase == trace::Phase::backward;
  const trace::Site* const forward = backward ? view.forward_of(origin.site->id) : origin.site;
  const trace::Site* const called = view.outermost_op(forward != nullptr ? forward->id : origin.site->id);
  finding.culprit.op = called->name;
  finding.title =
      fmt::format("{} of a singular matrix{}", base_name(called->name), backward ? ", in its derivative" : "");
  finding.message = fmt::format(
      "{} makes {} of {} results from finite matrices: {}. The matrix is singular, or so near to it "
      "that its inverse is beyond the type.",
      view.describe(called->id), describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)),
      describe_tensors(event.inputs));
  if (nonfinite_when_wider(event)) finding.message += fmt::format(" In {} it is the same.", event.replay.precision);
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("{} of {} · {}", describe_bad(counts),
                              count_of(static_cast<std::int64_t>(counts.elements)), describe_tensors(event.inputs));
  add_scene(origin, finding);
  finding.fix =
      "regularise: torch.linalg.solve(A + eps * torch.eye(n), b) with eps about 1e-6 of the diagonal, or "
      "torch.linalg.lstsq / pinv";
  finding.fix_cpp = "regularise: torch::linalg_solve(A + eps * torch::eye(n), b)";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp612;
const Rule rule_amp612 = {
    .code = "AMP612",
    .name = "singular-solve",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "a solve, inverse or factorisation of a singular matrix",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
