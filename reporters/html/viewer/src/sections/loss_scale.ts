// The loss scale over the run with its skips; below it, on the same axis, the loss and the gradient norm.
import type uPlot from "uplot";
import { h, type Child } from "../dom";
import { Timeline, type ChartOptions } from "../charts/timeline";
import { count, extent, listed, number, percent, powerOfTwo, scale, stepRange, superscript } from "../format";
import { scalersOf, value, type Report, type Scaler, type ScalerSettings, type SeriesPoint, type TimelineEntry } from "../report";
import { scaleSentence, seriesSentence } from "../sentences";
import { colour } from "../theme";
import { section } from "./section";

/** Scales of 0 have no logarithm; they are drawn this many powers of two below the smallest other one. */
const belowSmallest = 2;

function logScale(scaler: Scaler): (raw: number) => number | null {
  let smallest = Infinity;
  for (const entry of scaler.timeline) {
    for (const raw of [value(entry.scale), value(entry.scale_after)]) if (raw > 0 && raw < smallest) smallest = raw;
  }
  const bottom = Number.isFinite(smallest) ? Math.log2(smallest) - belowSmallest : 0;
  return (raw) => (raw > 0 && Number.isFinite(raw) ? Math.log2(raw) : raw === 0 ? bottom : null);
}

function scaleChart(scaler: Scaler, xLabel: boolean): ChartOptions {
  const log = logScale(scaler);
  const steps: number[] = [];
  const scales: (number | null)[] = [];
  for (const entry of scaler.timeline) {
    steps.push(entry.first_step);
    scales.push(log(value(entry.scale)));
  }
  const last = scaler.timeline[scaler.timeline.length - 1];
  if (last) {
    steps.push(last.last_step + 1);
    scales.push(log(value(last.scale_after)));
  }
  const skips = scaler.timeline.filter((entry) => entry.skipped);
  return {
    yLabel: "loss scale (log2)",
    yTick: (exponent) => powerOfTwo(exponent),
    wholeTicks: true,
    height: xLabel ? 236 : 200,
    lines: [{ label: "loss scale", colour: "accent", stepped: true, width: 2 }],
    data: [steps, scales],
    marks: (chart, context) => drawSkips(chart, context, skips, log),
    xLabel,
  };
}

function drawSkips(chart: uPlot, context: CanvasRenderingContext2D, skips: readonly TimelineEntry[], log: (raw: number) => number | null): void {
  const ratio = window.devicePixelRatio || 1;
  const size = 4 * ratio;
  const { min = 0, max = 0 } = chart.scales.x ?? {};
  context.save();
  context.lineWidth = 1.8 * ratio;
  for (const byDesign of [true, false]) {
    context.strokeStyle = colour(byDesign ? "muted" : "error");
    context.beginPath();
    for (const skip of skips) {
      const exponent = log(value(skip.scale));
      if (skip.by_design !== byDesign || exponent === null || skip.first_step < min || skip.first_step > max) continue;
      const x = chart.valToPos(skip.first_step, "x", true);
      const y = chart.valToPos(exponent, "y", true);
      if (byDesign) {
        context.moveTo(x + size, y);
        context.arc(x, y, size, 0, 2 * Math.PI);
      } else {
        context.moveTo(x - size, y - size);
        context.lineTo(x + size, y + size);
        context.moveTo(x + size, y - size);
        context.lineTo(x - size, y + size);
      }
    }
    context.stroke();
  }
  context.restore();
}

/** Norms often cover many powers of ten, losses seldom: the axis is logarithmic where it helps. */
function seriesChart(label: string, points: readonly SeriesPoint[], xLabel: boolean): ChartOptions {
  const finite = points.filter((point) => point.count > point.nonfinite);
  const [low] = extent(finite.map((point) => value(point.min)));
  const [, high] = extent(finite.map((point) => value(point.max)));
  const logarithmic = low > 0 && high > 50 * low && Number.isFinite(high);
  // A linear axis of very small or large values counts in a power of ten, named in its title.
  const magnitude = Math.max(Math.abs(low), Math.abs(high));
  const power = Math.floor(Math.log10(magnitude));
  const unit = !logarithmic && Number.isFinite(power) && (power < -2 || power > 4) ? power : 0;
  const place = (raw: number) => (logarithmic ? Math.log10(raw) : raw / 10 ** unit);
  const steps: number[] = [];
  const means: (number | null)[] = [];
  const smallest: (number | null)[] = [];
  const largest: (number | null)[] = [];
  for (const point of points) {
    const known = point.count > point.nonfinite;
    steps.push((point.first_step + point.last_step) / 2);
    means.push(known ? place(value(point.mean)) : null);
    smallest.push(known ? place(value(point.min)) : null);
    largest.push(known ? place(value(point.max)) : null);
  }
  const bad = points.filter((point) => point.nonfinite > 0);
  return {
    yLabel: logarithmic ? `${label} (log10)` : unit === 0 ? label : `${label} / 10${superscript(String(unit))}`,
    yTick: (at) => (logarithmic ? `10${superscript(String(at))}` : String(Number(at.toPrecision(6)))),
    wholeTicks: logarithmic,
    height: xLabel ? 156 : 120,
    lines: [
      { label: `largest ${label}`, colour: "accent-soft", width: 0.5 },
      { label: `smallest ${label}`, colour: "accent-soft", width: 0.5 },
      { label, colour: "accent" },
    ],
    band: [1, 2],
    data: [steps, largest, smallest, means],
    marks: (chart, context) => {
      const ratio = window.devicePixelRatio || 1;
      context.save();
      context.fillStyle = colour("error");
      for (const point of bad) {
        const x = chart.valToPos((point.first_step + point.last_step) / 2, "x", true);
        if (x < chart.bbox.left || x > chart.bbox.left + chart.bbox.width) continue;
        context.beginPath();
        context.moveTo(x - 4 * ratio, chart.bbox.top);
        context.lineTo(x + 4 * ratio, chart.bbox.top);
        context.lineTo(x, chart.bbox.top + 7 * ratio);
        context.fill();
      }
      context.restore();
    },
    xLabel,
  };
}

function pointOf(points: readonly SeriesPoint[], step: number): SeriesPoint | undefined {
  return points.find((point) => step >= point.first_step && step <= point.last_step);
}

function entryOf(scaler: Scaler, step: number): TimelineEntry | undefined {
  return scaler.timeline.find((entry) => step >= entry.first_step && step <= entry.last_step);
}

/** What the ledger knows of a skipped step. */
function skipFacts(entry: TimelineEntry): string[] {
  if (!entry.skipped) return [];
  const facts: string[] = [];
  const { skip } = entry;
  if (skip && skip.gradients.length > 0) {
    const shown = skip.gradients.slice(0, 3).map((gradient) => `${gradient.parameter} (${percent(value(gradient.share))})`);
    const more = skip.gradients.length - shown.length;
    facts.push(`not finite: ${listed(shown)}${more > 0 ? ` and ${count(more)} more` : ""}`);
  } else if (entry.parameters.length > 0) {
    facts.push(`overflowed: ${listed(entry.parameters)}`);
  }
  if (skip?.born) facts.push(`first in ${[skip.born.source, skip.born.module, skip.born.op].filter(Boolean).join(" ")}`);
  const taken = skip?.optimizers.filter((optimizer) => optimizer.taken).map((optimizer) => optimizer.name) ?? [];
  if (taken.length > 0) facts.push(`${listed(taken)} stepped all the same`);
  if (skip?.smaller_scale_helps === true) facts.push("a smaller scale fits");
  if (skip?.smaller_scale_helps === false) facts.push("no scale helps");
  return facts;
}

function settingsTable(scaler: Scaler): HTMLElement {
  const { settings, recommendation } = scaler;
  const names: [keyof ScalerSettings, string, (raw: number) => string][] = [
    ["init_scale", "init_scale", scale],
    ["growth_factor", "growth_factor", number],
    ["backoff_factor", "backoff_factor", number],
    ["growth_interval", "growth_interval", count],
  ];
  return h(
    "div",
    {},
    h(
      "table",
      {},
      h("caption", {}, "Settings", scaler.implementation ? h("span", { class: "kind" }, ` ${scaler.implementation}`) : null),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "setting"), h("th", { scope: "col", class: "numeric" }, "this run"), recommendation ? h("th", { scope: "col", class: "numeric" }, "recommended") : null)),
      h("tbody", {}, ...names.map(([key, name, spell]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "numeric" }, spell(value(settings[key]))), recommendation ? h("td", { class: "numeric" }, spell(value(recommendation[key]))) : null))),
    ),
    recommendation?.reason ? h("p", { class: "aside" }, recommendation.reason) : null,
  );
}

function legend(scaler: Scaler | undefined, report: Report): HTMLElement {
  const sample = (kind: string, mark: string) => h("span", { class: `mark-sample ${kind}`, "aria-hidden": "true" }, mark);
  const seen = shownSeries.some(([name]) => report.series.some((series) => series.name === name));
  const entries: Child[][] = [];
  if (scaler) entries.push([sample("skip", "×"), " skipped"], [sample("skip-by-design", "○"), " skipped by design"]);
  if (seen) entries.push([sample("skip", "▾"), " not finite"], ["line: mean of a window of steps, band: its smallest to largest"]);
  return h("p", { class: "legend" }, ...entries.map((entry) => h("span", {}, ...entry)));
}

const shownSeries: [string, string][] = [["loss", "loss"], ["grad_norm", "gradient norm"]];

function timelineOf(report: Report, scaler: Scaler | undefined): HTMLElement | undefined {
  const series = shownSeries.flatMap(([name, label]) => {
    const points = report.series.find((candidate) => candidate.name === name)?.points ?? [];
    return points.length > 0 ? [{ label, points }] : [];
  });
  const charts: ChartOptions[] = [];
  if (scaler && scaler.timeline.length > 0) charts.push(scaleChart(scaler, series.length === 0));
  series.forEach(({ label, points }, i) => charts.push(seriesChart(label, points, i === series.length - 1)));
  if (charts.length === 0) return undefined;
  const readout = (step: number | null): string => {
    if (step === null) return "Point at a step to read it; drag to zoom, double-click for the whole run.";
    const facts = [`step ${count(step)}`];
    const entry = scaler && entryOf(scaler, step);
    if (entry) {
      const after = value(entry.scale_after);
      facts.push(`loss scale ${scale(value(entry.scale))}${entry.last_step === step && after !== value(entry.scale) ? ` → ${scale(after)}` : ""}`);
      if (entry.skipped) facts.push(entry.by_design ? "skipped, by design" : "skipped");
      if (entry.assigned) facts.push("set by the program");
      facts.push(...skipFacts(entry));
    }
    for (const { label, points } of series) {
      const point = pointOf(points, step);
      if (!point) continue;
      const span = point.last_step > point.first_step ? ` (mean of ${stepRange(point.first_step, point.last_step)})` : "";
      facts.push(point.count > point.nonfinite ? `${label} ${number(value(point.mean))}${span}` : `${label} not finite`);
    }
    return facts.join(" · ");
  };
  const last = Math.max(report.run.steps - 1, (scaler?.timeline[scaler.timeline.length - 1]?.last_step ?? 0) + 1);
  return new Timeline("Loss scale, loss and gradient norm over the steps", 0, last, charts, readout).element;
}

export function lossScale(report: Report): HTMLElement {
  const scalers = scalersOf(report);
  const says = (scaler: Scaler | undefined) =>
    [
      scaler ? scaleSentence(scaler, report.run.steps) : "No loss scaler was used in this run.",
      ...shownSeries.map(([name, label]) => {
        const points = report.series.find((candidate) => candidate.name === name)?.points ?? [];
        return points.length > 0 ? seriesSentence(label, points) : `The ${label} was not seen.`;
      }),
    ].join(" ");
  const sentence = h("p", { class: "says" });
  const holder = h("div", { class: "beside" });
  const show = (scaler: Scaler | undefined) => {
    sentence.textContent = says(scaler);
    const timeline = timelineOf(report, scaler);
    holder.replaceChildren();
    if (timeline) holder.append(timeline);
    holder.append(h("div", { class: "settings" }, scaler ? settingsTable(scaler) : "", timeline ? legend(scaler, report) : ""));
  };
  let choice: Child = null;
  if (scalers.length > 1) {
    choice = h(
      "p",
      {},
      h("label", {}, "scaler ", h("select", { change: (event: Event) => show(scalers[Number((event.target as HTMLSelectElement).value)]) },
        ...scalers.map((scaler, i) => h("option", { value: i }, `${scaler.id} ${scaler.implementation ?? ""}`)))),
    );
  }
  show(scalers[0]);
  return section("loss-scale-over-steps", "Loss scale", undefined, choice, sentence, holder);
}
