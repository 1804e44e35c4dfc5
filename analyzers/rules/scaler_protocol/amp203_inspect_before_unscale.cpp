#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

/// Operators whose result on scaled gradients is off by the scale: magnitudes, sums, statistics. Checks for NaN, signs
/// and copies are the same for both.
bool measures(const trace::Site& site) {
  if (site.api.starts_with("clip_grad") && !clips_nothing(site)) return false;  // AMP202
  if (is_norm(site.name)) return true;
  constexpr std::array<std::string_view, 16> names = {"abs",    "pow",   "square", "sum",        "mean", "max",
                                                      "min",    "amax",  "amin",   "aminmax",    "std",  "var",
                                                      "median", "histc", "dot",    "foreach_abs"};
  return std::find(names.begin(), names.end(), base_name(site.name)) != names.end();
}

/// The same, or it only brings gradients together for what does: vector_norm(cat([p.grad.flatten() for …])).
bool measures_somewhere(const TraceView& view, const trace::Site& site) {
  if (measures(site)) return true;
  if (base_name(site.name) != "cat") return false;
  const std::vector<const trace::Site*> users = users_of(view, site.id);
  return std::any_of(users.begin(), users.end(), [](const trace::Site* user) { return measures(*user); });
}

struct Read {
  StepSpan steps;
  std::int64_t site = trace::none;
};

struct Pending {
  std::map<std::int64_t, StepSpan> reads;  ///< by site
};

class Collector {
 public:
  explicit Collector(const TraceView& view) : view_(view) {}

  std::map<std::int64_t, Read> collect() {
    walk_protocol(view_, [this](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
      follow(span, event, before);
      previous_ = event.kind;
    });
    return std::move(found_);
  }

 private:
  void follow(const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    switch (event.kind) {
      case EventKind::scale_read:
        // Right after an update it serves the schedule or the log, unless the program divides by what it read; anywhere
        // else it may do that.
        if ((previous_ != EventKind::scaler_update && previous_ != EventKind::scale_read) ||
            (event.flags & event_flag::by_inverse_scale) != 0) {
          reads_scale_ = true;
        }
        if (reads_scale_) pending_.clear();
        break;
      case EventKind::gradient_read: {
        const trace::Site* const site = view_.site(event.site);
        if (site == nullptr || (event.flags & event_flag::scaled) == 0 || reads_scale_ ||
            !measures_somewhere(view_, *site))
          break;
        for (const std::int64_t optimizer : concerned(event, before)) {
          const GradientState& gradients = before.of(optimizer);
          if (!gradients.present || !gradients.scaled || gradients.unscaled || gradients.divided || gradients.used)
            continue;
          extend(pending_[optimizer].reads[event.site], span);
        }
        break;
      }
      case EventKind::gradient_write: {
        // What is measured and then multiplied is clipped, and that is said elsewhere.
        const trace::Site* const site = view_.site(event.site);
        if (site != nullptr && clips_nothing(*site)) break;
        if (site == nullptr || op_kind(site->name) != OpKind::move) {
          for (const std::int64_t optimizer : concerned(event, before))
            pending_.erase(optimizer);
        }
        break;
      }
      case EventKind::unscale:
      case EventKind::optimizer_step:
      case EventKind::optimizer_skip:
        commit(event.object);
        break;
      case EventKind::scaler_update:
        reads_scale_ = false;
        break;
      default:
        break;
    }
  }

  void commit(std::int64_t optimizer) {
    const auto pending = pending_.find(optimizer);
    if (pending == pending_.end()) return;
    for (const auto& [site, span] : pending->second.reads) {
      Read& read = found_[site];
      read.site = site;
      extend(read.steps, span);
    }
    pending_.erase(pending);
  }

  const TraceView& view_;
  EventKind previous_ = EventKind::backward;
  bool reads_scale_ = false;  ///< since the last update, to divide by it
  std::map<std::int64_t, Pending> pending_;
  std::map<std::int64_t, Read> found_;  ///< by site
};

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  std::map<std::string, Read> by_line;  // a norm is several operators on one line
  for (const auto& [id, read] : Collector(view).collect()) {
    Read& line = by_line[view.place(view.source_of(id))];
    if (line.site == trace::none) line.site = id;
    extend(line.steps, read.steps);
    line.steps.count = std::max(line.steps.count, read.steps.count);
  }
  for (const auto& [place, read] : by_line) {
    const double factor = view.scale_at(read.steps.first).value_or(1);
    if (factor == 1) continue;
    const double last = view.scale_at(read.steps.last).value_or(factor);
    const trace::Site& site = *view.site(read.site);
    Finding finding = context.finding();
    finding.culprit = context.culprit(read.site);
    finding.culprit.op = site.api.empty() ? site.name : site.api;
    finding.culprit.phase = trace::Phase::optimizer;
    finding.steps = read.steps;
    finding.title = "gradients are measured while they are still scaled";
    finding.message =
        fmt::format("{} reads gradients between the backward pass and unscale_: what it says is {} times too large",
                    *finding.culprit.op, scale(factor));
    finding.message += last == factor ? std::string(", and jumps whenever the loss scale changes.")
                                      : fmt::format(" at first and {} times at the end.", scale(last));
    finding.proof = fmt::format("{} times too large in {}", scale(factor), plural(read.steps.count, "step"));
    finding.evidence = {{"factor", factor}, {"last_factor", last}};
    finding.fix = "scaler.unscale_(optimizer)   before the gradients are looked at";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array<std::string_view, 5> symptom_of = {"AMP202", "AMP204", "AMP205", "AMP208", "AMP209"};

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp203;
const Rule rule_amp203 = {
    .code = "AMP203",
    .name = "inspect-before-unscale",
    .family = Family::scaler_protocol,
    .severity = Severity::warning,
    .summary = "gradients or their norm are read while they are still multiplied by the loss scale",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
