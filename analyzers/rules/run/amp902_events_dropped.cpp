#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const trace::RecorderStatus& status = context.trace().status;
  const trace::Damage& damage = context.trace().damage;
  const bool off = !status.switched_off_because.empty();
  if (status.events_dropped == 0 && status.sites_dropped == 0 && !off && !damage.any()) return;

  const std::int64_t all = status.events_seen + status.events_dropped;
  const double lost = all > 0 ? static_cast<double>(status.events_dropped) / static_cast<double>(all) : 0;
  const std::int64_t last = std::max<std::int64_t>(context.view().steps() - 1, 0);
  Finding finding = context.finding();
  finding.precision_fault = false;
  finding.culprit.op = "ampscope";
  finding.steps = {0, last, last + 1};
  if (!off && !damage.any() && status.sites_dropped == 0 && lost < context.parameter("warn_share"))
    finding.severity = Severity::info;

  std::string proof;
  const auto say = [&](const std::string& text) { proof += (proof.empty() ? "" : " · ") + text; };
  if (off) {
    const std::int64_t at = std::max<std::int64_t>(status.switched_off_at_step, 0);
    finding.title = fmt::format("observation ended at step {}", count_of(at));
    finding.message =
        fmt::format("ampscope switched itself off: {}. What came after was not watched.", status.switched_off_because);
    finding.steps = {at, std::max(last, at), std::max(last, at) - at + 1};
    say(status.switched_off_because);
    finding.fix = "remove the reason and run again; the findings above hold up to that step";
  } else if (status.events_dropped != 0 || status.sites_dropped != 0) {
    finding.title = "the recorder lost events, so what is not reported may still have happened";
    finding.fix = "run again with a lower --level, or with fewer steps";
  } else {
    finding.title = "the end of the trace could not be read";
    finding.fix = "`ampscope info` says what was lost; findings hold for what was read";
  }
  if (status.events_dropped != 0) {
    say(fmt::format("{} of {} lost ({})", plural(status.events_dropped, "event"), count_of(all), share(lost)));
  }
  if (status.sites_dropped != 0) say(fmt::format("{} not told apart", plural(status.sites_dropped, "operator place")));
  if (damage.any()) {
    say(fmt::format("{} of {} bytes read", count_of(static_cast<std::int64_t>(damage.bytes_read)),
                    count_of(static_cast<std::int64_t>(damage.bytes_total))));
  }
  if (finding.message.empty())
    finding.message = fmt::format("{}. Silence about that part does not mean health.", proof);
  finding.proof = proof;
  finding.evidence = {{"events_dropped", static_cast<double>(status.events_dropped)},
                      {"events_seen", static_cast<double>(status.events_seen)},
                      {"share_dropped", lost},
                      {"sites_dropped", static_cast<double>(status.sites_dropped)},
                      {"bytes_lost", static_cast<double>(damage.bytes_total - damage.bytes_read)}};
  findings.push_back(std::move(finding));
}

constexpr std::array parameters = {ParameterSpec{"warn_share", 0.01, 0, 1, false,
                                                 "share of events dropped from which it is a warning; below, a note"}};

}  // namespace

extern const Rule rule_amp902;
const Rule rule_amp902 = {
    .code = "AMP902",
    .name = "events-dropped",
    .family = Family::run,
    .severity = Severity::warning,
    .summary = "the recorder lost events or ended early",
    .precision_fault = false,
    .parameters = parameters,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
