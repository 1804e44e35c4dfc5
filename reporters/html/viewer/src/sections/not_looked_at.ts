// What this report does not know. Never hidden: silence about these is not health.
import { h, type Child } from "../dom";
import { count, counted, percent } from "../format";
import { value, type Report } from "../report";
import { section } from "./section";

const sampling: Record<string, string> = {
  ops: 'Level "ops": ops and their types in every step. No gradient values and no statistics of activations.',
  grads: 'Level "grads": ops and gradient statistics in every step. No statistics of activations.',
  auto: 'Level "auto": ops, gradient statistics and a check for non-finite results in every step; full statistics of activations only in the first steps, in sampled ones and after an anomaly.',
  full: 'Level "full": full statistics in every step.',
  shadow: 'Level "shadow": full statistics in every step; in the first steps and in sampled ones a call of every op that can be called again is compared with higher precision.',
};

function facts(report: Report): [string, Child][] {
  const { run } = report;
  const rows: [string, Child][] = [["sampling", sampling[run.level] ?? `Level "${run.level}".`]];
  rows.push([
    "dropped events",
    run.dropped === 0 ? "None." : `${count(run.dropped)} events were dropped: the recorder could not keep up, so counts are too low and something may be missing.`,
  ]);
  if (run.damaged) rows.push(["damaged trace", "Part of the trace could not be read; what follows its last complete part is missing here."]);
  if (run.switched_off_because) rows.push(["recorder switched off", `The recorder switched itself off: ${run.switched_off_because}. Nothing after that was seen.`]);
  if (run.steps === 0) rows.push(["steps", "No training step was seen."]);
  if (run.ranks > 1) rows.push(["processes", `${counted(run.ranks, "rank")} trained together; the charts show one of them.`]);
  rows.push([
    "regions not observed",
    report.hidden.length === 0
      ? "None: no compiled or replayed region hid its ops."
      : h("ul", {}, ...report.hidden.map((region) => h("li", {}, `${region.kind} ${region.name}: ${percent(value(region.time_share))} of the time`))),
  ]);
  return rows;
}

export function notLookedAt(report: Report): HTMLElement {
  const { not_evaluated: rules } = report;
  const says = [
    `${counted(report.run.rules, "rule")} evaluated`,
    `${count(rules.length)} not evaluated`,
    `${counted(report.hidden.length, "region")} not observed`,
    `${counted(report.run.dropped, "event")} dropped`,
  ].join(", ") + ".";
  return section(
    "not-looked-at",
    "Not looked at",
    says,
    h("dl", { class: "parts wide-terms" }, ...facts(report).flatMap(([name, fact]) => [h("dt", {}, name), h("dd", {}, fact)])),
    rules.length === 0
      ? h("p", { class: "empty" }, report.run.rules === 0 ? "No rule was evaluated." : "Every rule had the data it needs.")
      : h(
          "table",
          { class: "plain" },
          h("caption", {}, "Rules not evaluated"),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "rule"), h("th", { scope: "col" }, "name"), h("th", { scope: "col" }, "needs"))),
          h("tbody", {}, ...rules.map((rule) => h("tr", {}, h("td", {}, rule.rule), h("td", {}, rule.name), h("td", {}, rule.needs)))),
        ),
  );
}
