// Which picture shows what a finding claims.
import { fp16 } from "../float_limits";
import { counted, number } from "../format";
import { scaleMarks } from "../gradients";
import { numeric, scalersOf, type Finding, type Report } from "../report";
import { logBars, plainBars, type Bar } from "./bars";
import { chainPicture } from "./chain";
import { flushedHistogram } from "./histogram";
import type { Picture } from "./picture";
import { scaleFall } from "./scale_fall";
import { stepStrip } from "./steps";

/** The first of these pieces of evidence that is a positive finite number. */
function positive(finding: Finding, ...names: string[]): number | undefined {
  for (const name of names) {
    const amount = numeric(finding.evidence[name]);
    if (amount !== undefined && amount > 0 && Number.isFinite(amount)) return amount;
  }
  return undefined;
}

function clippedNorm(finding: Finding): Picture | undefined {
  const seen = positive(finding, "norm_seen");
  const real = positive(finding, "true_norm");
  const limit = positive(finding, "max_norm");
  if (seen === undefined || real === undefined) return undefined;
  const acts = positive(finding, "effective_max_norm");
  const says =
    `The clip sees a norm of ${number(seen)}; unscaled it is ${number(real)}.` +
    (acts !== undefined && limit !== undefined ? ` So max_norm ${number(limit)} acts like ${number(acts)}.` : "");
  const bars: Bar[] = [
    { label: "norm the clip sees", amount: seen, faulty: true },
    { label: "true norm", amount: real },
  ];
  if (acts !== undefined) bars.push({ label: "max_norm acts like", amount: acts, faulty: true });
  return logBars(says, "gradient norm", bars, limit === undefined ? [] : [{ label: "max_norm", at: limit }]);
}

function flushed(finding: Finding, report: Report): Picture | undefined {
  const named = report.parameters.filter((parameter) => parameter.name === finding.culprit.parameter);
  const watched = named.length > 0 ? named : report.parameters;
  const marks = scaleMarks(report);
  const fits = positive(finding, "recommended_scale", "scale_that_fits");
  const whose = named[0] ? `the gradients of ${named[0].name}` : "all gradients";
  return flushedHistogram(watched, whose, marks.today ?? 0, fits === undefined ? marks.recommended : Math.log2(fits));
}

function scheduleAhead(finding: Finding): Picture | undefined {
  const scheduled = positive(finding, "schedule_steps");
  const real = positive(finding, "optimizer_steps", "real_steps");
  if (scheduled === undefined || real === undefined) return undefined;
  return plainBars(
    `The schedule advanced ${counted(scheduled, "time")} while the optimizer made ${counted(real, "step")}.`,
    "steps",
    [{ label: "schedule", amount: scheduled, faulty: true }, { label: "optimizer", amount: real }],
  );
}

/** One op with what went in and the limit it met, where no chain was recorded. */
function magnitudeAgainstLimit(finding: Finding): Picture | undefined {
  const largest = positive(finding, "replay_absmax", "fp32_absmax", "largest", "absmax");
  const input = positive(finding, "input_absmax");
  const limit = positive(finding, "limit", "dtype_max") ?? fp16.max;
  if (largest === undefined) return undefined;
  const bars: Bar[] = [];
  if (input !== undefined) bars.push({ label: "largest input", amount: input });
  bars.push({ label: "result in fp32", amount: largest, faulty: largest > limit });
  return logBars(`The result reaches ${number(largest)}; the limit is ${number(limit)}.`, "magnitude", bars, [{ label: "largest finite", at: limit }]);
}

export function pictureOf(finding: Finding, report: Report): Picture | undefined {
  const scaler = scalersOf(report)[0];
  const own = (): Picture | undefined => {
    switch (finding.rule) {
      case "AMP202": return clippedNorm(finding);
      case "AMP201":
      case "AMP217":
      case "AMP501": return flushed(finding, report);
      case "AMP212": return scheduleAhead(finding);
      case "AMP301":
      case "AMP302":
      case "AMP303":
      case "AMP304": return scaler && scaleFall(scaler, report.run.steps);
      case "AMP401":
      case "AMP402":
      case "AMP403":
      case "AMP404": return chainPicture(finding.chain) ?? magnitudeAgainstLimit(finding);
      default: return undefined;
    }
  };
  return own() ?? chainPicture(finding.chain) ?? stepStrip(finding, report);
}
