// The sentence above each chart: what to see in it, said from the data.
import { count, counted, number, percent, powerOfTwo, scale } from "./format";
import { sharesAt, type GradientTotals, type ScaleMarks } from "./gradients";
import { value, type Report, type Scaler, type SeriesPoint } from "./report";

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function scaleSentence(scaler: Scaler, steps: number): string {
  const { timeline } = scaler;
  const first = timeline[0];
  const last = timeline[timeline.length - 1];
  if (!first || !last) return "The scaler never updated its scale.";
  let skipped = 0;
  let byDesign = 0;
  for (const entry of timeline) {
    if (!entry.skipped) continue;
    skipped += 1;
    if (entry.by_design) byDesign += 1;
  }
  const skips =
    skipped === 0
      ? "no step was skipped"
      : `${count(skipped)} of ${counted(steps, "step")} ${skipped === 1 ? "was" : "were"} skipped` +
        (byDesign === 0 ? "" : byDesign === skipped ? ", by design" : `, ${count(byDesign)} of them by design`);
  const from = value(first.scale);
  const to = value(last.scale_after);
  const move = from === to ? `the scale ended where it began, at ${scale(to)}` : `the scale ${to < from ? "fell" : "rose"} from ${scale(from)} to ${scale(to)}`;
  const same = timeline.every((entry) => value(entry.scale) === from && value(entry.scale_after) === from);
  return capital(`${skips}; ${same ? `the scale stayed at ${scale(from)}` : move}.`);
}

/** What a series of values over steps did. */
export function seriesSentence(name: string, points: readonly SeriesPoint[]): string {
  const finite = points.filter((point) => point.count > point.nonfinite);
  const bad = points.filter((point) => point.nonfinite > 0);
  const first = finite[0];
  const last = finite[finite.length - 1];
  const lost = bad[0] ? ` It is non-finite from step ${count(bad[0].first_step)} on${bad.length === 1 ? ", once" : `, in ${count(bad.length)} of ${count(points.length)} windows`}.` : "";
  if (!first || !last) return `The ${name} was never finite.`;
  const from = value(first.mean);
  const to = value(last.mean);
  return `The ${name} ${from === to ? `stayed at ${number(to)}` : `went from ${number(from)} to ${number(to)}`}.${lost}`;
}

export function gradientSentence(totals: GradientTotals, marks: ScaleMarks, whose: string): string {
  const { exponents, elements, zero, nonfinite } = totals;
  if (exponents.total === 0) return `All ${count(elements)} gradient values looked at ${whose} are 0 or non-finite.`;
  const range = `Gradients ${whose} lie between ${powerOfTwo(exponents.first)} and ${powerOfTwo(exponents.last + 1)}`;
  const today = marks.today ?? 0;
  const shares = sharesAt(exponents, today);
  const verdict =
    shares.lost + shares.overflowed > 0
      ? `fp16 flushes ${percent(shares.lost)} of the values that are not 0 to zero, and ${percent(shares.overflowed)} overflow`
      : shares.imprecise > 0
        ? `fp16 holds all of them, ${percent(shares.imprecise)} as subnormals`
        : "fp16 holds all of them with full precision";
  const where = marks.today === undefined ? "unscaled" : `at loss scale ${powerOfTwo(today)}`;
  return `${range}; ${where}, ${verdict}. ${percent(zero / elements)} of the values are exactly 0${nonfinite > 0 ? `, ${count(nonfinite)} are non-finite` : ""}.`;
}

export function lookedAtSentence(report: Report): string {
  const { run } = report;
  return `${counted(run.steps, "step")}, ${counted(run.ops, "op")}, ${counted(run.parameters, "parameter")} watched, ${counted(run.rules, "rule")} evaluated`;
}
