// Is my run healthy? What is wrong? Then what ran, where and at what cost.
import { h, joined, type Child } from "../dom";
import { count, counted, duration, moment, number, percent, ratio } from "../format";
import { numeric, value, type Report, type Severity } from "../report";
import { lookedAtSentence } from "../sentences";
import { statusShape } from "../status";

const outcomes = { error: "Not healthy", warning: "Look at this", info: "Healthy", clean: "Healthy" } as const;

export function countOf(report: Report, severity: Severity): number {
  return report.findings.filter((finding) => finding.severity === severity).length;
}

/** "1 error, 0 warnings, 1 note". */
function tally(report: Report): string {
  return [
    counted(countOf(report, "error"), "error"),
    counted(countOf(report, "warning"), "warning"),
    counted(countOf(report, "info"), "note"),
  ].join(", ");
}

function verdictWords(report: Report): string {
  if (report.run.steps === 0) return "No training step was seen, so nothing can be said about the run";
  const worst = report.findings[0];
  if (report.verdict === "clean" || !worst) return `${outcomes.clean}: nothing to report in ${counted(report.run.steps, "step")}`;
  if (report.verdict === "info") return `${outcomes.info}, with ${counted(countOf(report, "info"), "note")}`;
  const others = countOf(report, "error") + countOf(report, "warning") - 1;
  return `${outcomes[report.verdict]}: ${worst.title}${others > 0 ? `, and ${count(others)} more` : ""}`;
}

function summary(report: Report): string {
  const { run, scaler } = report;
  const first = scaler?.timeline[0];
  const last = scaler?.timeline[scaler.timeline.length - 1];
  const from = first ? value(first.scale) : undefined;
  const to = last ? value(last.scale_after) : undefined;
  const scales = from === undefined || to === undefined ? "no loss scaling" : from === to ? `loss scale ${number(to)}` : `loss scale ${number(from)} → ${number(to)}`;
  const overhead = numeric(run.overhead_ratio);
  return [
    tally(report),
    lookedAtSentence(report),
    scales,
    overhead === undefined ? "" : `cost ${ratio(overhead)}`,
  ].filter(Boolean).join(" · ");
}

/** What watching cost, as the budget's own comparison of steps found it. */
function budgetFact(report: Report): string | null {
  const { budget, steps } = report.run;
  if (!budget) return null;
  const cost = numeric(budget.cost_percent);
  const low = numeric(budget.cost_percent_interval?.[0] ?? null);
  const high = numeric(budget.cost_percent_interval?.[1] ?? null);
  const spent = cost === undefined ? "cost unknown" : low === undefined || high === undefined ? `cost ${number(cost)} %` : `cost ${number(cost)} % (95 %: ${number(low)} to ${number(high)})`;
  return `${number(numeric(budget.percent) ?? 0)} % asked for, ${spent}; of ${counted(steps, "step")} operators were seen in ${count(budget.operator_steps)}, gradients' statistics taken in ${count(budget.gradient_steps)}, outputs' in ${count(budget.full_steps)}`;
}

export function documentTitle(report: Report): string {
  const program = report.run.command.find((word) => /\.(py|sh)$/.test(word)) ?? report.run.command[0] ?? "a run";
  return `${tally(report)} · ${program} · ampscope`;
}

export function head(report: Report): HTMLElement {
  const { run } = report;
  const overhead = numeric(run.overhead_ratio);
  const skipped = run.skipped_steps.length;
  const facts: [string, Child][] = [
    ["program", h("span", { class: "path" }, run.command.join(" ") || "unknown")],
    ["torch", joined([run.torch ?? "unknown", run.python ? `Python ${run.python}` : run.language === "c++" && "C++"], " · ").join("")],
    ["device", joined([run.device, run.processor], " · ").join("") || "unknown"],
    ["precision", run.precision ?? "unknown"],
    ["steps", count(run.steps)],
    ["skipped", run.steps > 0 ? `${count(skipped)} (${percent(skipped / run.steps)})` : count(skipped)],
    ["cost of watching", overhead === undefined ? "unknown" : `${ratio(overhead)}, level ${run.level}`],
    ["budget", budgetFact(report)],
    ["when", run.started ? moment(Date.parse(run.started) * 1e6) : "unknown"],
    ["ended", joined([run.ended, run.exit_status !== null && `exit status ${run.exit_status}`], ", ").join("") || "unknown"],
    ["processes", run.ranks > 1 ? counted(run.ranks, "rank") : null],
    ["time per step", stepTime(report)],
  ];
  const status = run.steps === 0 ? "info" : report.verdict;
  return h(
    "header",
    { class: `head verdict-${status}` },
    h("h1", {}, statusShape(status, 24), h("span", {}, verdictWords(report))),
    h("p", { class: "summary" }, summary(report)),
    h("dl", { class: "facts" }, ...facts.filter(([, fact]) => fact !== null).map(([name, fact]) => h("div", {}, h("dt", {}, name), h("dd", {}, fact)))),
  );
}

function stepTime(report: Report): string | null {
  const points = report.series.find((series) => series.name === "step_time_ns")?.points ?? [];
  const means = points.map((point) => value(point.mean)).filter(Number.isFinite).sort((a, b) => a - b);
  const median = means[means.length >> 1];
  return median === undefined ? null : `${duration(median)} (median)`;
}
