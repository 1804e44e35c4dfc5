// Which picture shows what a finding claims.
import { floatLimits, fp16, shortDtype } from "../float_limits";
import { count, counted, number, percent } from "../format";
import { scaleMarks } from "../gradients";
import { numeric, scalersOf, type Finding, type Report } from "../report";
import { logBars, plainBars, type Bar, type Limit } from "./bars";
import { chainPicture } from "./chain";
import { flushedHistogram } from "./histogram";
import type { Picture } from "./picture";
import { scaleFall } from "./scale_fall";
import { stepStrip } from "./steps";

/** The evidence of that name, where it is a finite number. */
function figure(finding: Finding, name: string): number | undefined {
  const amount = numeric(finding.evidence[name]);
  return amount !== undefined && Number.isFinite(amount) ? amount : undefined;
}

function positive(finding: Finding, name: string): number | undefined {
  const amount = figure(finding, name);
  return amount !== undefined && amount > 0 ? amount : undefined;
}

function word(finding: Finding, name: string): string | undefined {
  const text = finding.evidence[name];
  return typeof text === "string" ? text : undefined;
}

function clipped(finding: Finding): Picture | undefined {
  const seen = positive(finding, "norm_seen");
  const real = positive(finding, "true_norm");
  const name = figure(finding, "clip_value") === undefined ? "max_norm" : "clip_value";
  const limit = positive(finding, name);
  const acts = positive(finding, `effective_${name}`);
  const bars: Bar[] = [];
  if (seen !== undefined) bars.push({ label: "norm the clip sees", amount: seen, faulty: true });
  if (real !== undefined) bars.push({ label: "true norm", amount: real });
  if (acts !== undefined) bars.push({ label: `${name} acts like`, amount: acts, faulty: true });
  if (bars.length < 2 && limit === undefined) return undefined;
  const says = [
    seen !== undefined && real !== undefined ? `The clip sees a norm of ${number(seen)}; without the loss scale it is ${number(real)}.` : "",
    acts !== undefined && limit !== undefined ? `${name} ${number(limit)} acts like ${number(acts)}.` : "",
  ];
  return logBars(says.filter(Boolean).join(" "), "gradient norm", bars, limit === undefined ? [] : [{ label: name, at: limit }]);
}

function flushed(finding: Finding, report: Report, dtype: string): Picture | undefined {
  const limits = floatLimits(dtype);
  const scale = positive(finding, "scale");
  return limits && flushedHistogram({
    parameters: report.parameters,
    dtype,
    limits,
    scaleLog2: scale === undefined ? (scaleMarks(report).today ?? 0) : Math.log2(scale),
    share: figure(finding, "share_flushed") ?? figure(finding, "gradient_share_lost") ?? 0,
    fits: positive(finding, "scale_that_fits") ?? positive(finding, "scale_that_saves_them"),
  });
}

function scheduleAhead(finding: Finding): Picture | undefined {
  const scheduled = positive(finding, "schedule_steps");
  const real = positive(finding, "real_steps");
  if (scheduled === undefined || real === undefined) return undefined;
  const ahead = positive(finding, "advanced_on_skip");
  const bars: Bar[] = [{ label: "schedule", amount: scheduled }, { label: "optimizer", amount: real }];
  if (ahead !== undefined) bars.push({ label: "schedule, on skips", amount: ahead, faulty: true });
  return plainBars(`The schedule advanced ${counted(scheduled, "time")}, but only ${counted(real, "step")} changed the weights.`, "steps", bars);
}

function tooLarge(finding: Finding): Picture | undefined {
  const factor = positive(finding, "factor");
  if (factor === undefined) return undefined;
  return logBars(
    `The optimizer gets gradients ${number(factor)} times as large as they are.`,
    "factor on the gradients",
    [{ label: "through the scaler", amount: 1 }, { label: "as it is", amount: factor, faulty: true }],
    [],
  );
}

/** A sum in half precision: how many terms, and up to where the type counts in ones. */
function summedInHalf(finding: Finding): Picture | undefined {
  const terms = positive(finding, "terms");
  const dtype = shortDtype(word(finding, "dtype") ?? "");
  // 2 to the number of significand bits, the implicit one included: above it not every whole number exists.
  const exact = { fp16: 2 ** 11, bf16: 2 ** 8 }[dtype];
  const limits = floatLimits(dtype);
  if (terms === undefined || exact === undefined || limits === undefined) return undefined;
  const marks: Limit[] = [{ label: `${dtype} is exact to`, at: exact }];
  if (dtype === "fp16") marks.push({ label: "fp16 ends at", at: limits.max });
  return logBars(
    `${counted(terms, "term")} are summed in ${dtype}, which holds every whole number only up to ${number(exact)}.`,
    "number of terms",
    [{ label: "terms", amount: terms, faulty: terms > exact }],
    marks,
  );
}

function changedDtypes(finding: Finding): Picture | undefined {
  const all = positive(finding, "backward_ops_under_autocast");
  const changed = figure(finding, "ops_with_changed_dtype") ?? 0;
  if (all === undefined) return undefined;
  const [forward, backward] = [word(finding, "forward_dtype"), word(finding, "backward_dtype")];
  const types = forward && backward ? `, such as ${shortDtype(forward)} forward and ${shortDtype(backward)} backward` : "";
  return plainBars(
    `${count(changed)} of ${counted(all, "backward op")} computed in another type than their forward ops${types}.`,
    "backward ops",
    [{ label: "under autocast", amount: all }, { label: "in another type", amount: changed, faulty: true }],
  );
}

function partUnseen(says: string, axis: string, label: string, share: number): Picture {
  return plainBars(says, axis, [{ label: "seen", amount: 1 - share }, { label, amount: share, faulty: true }], percent);
}

function dropped(finding: Finding): Picture | undefined {
  const share = positive(finding, "share_dropped");
  return share === undefined ? undefined : partUnseen(`${percent(share)} of the events were dropped.`, "share of events", "dropped", share);
}

function hidden(finding: Finding): Picture | undefined {
  const share = positive(finding, "time_share");
  return share === undefined || share > 1 ? undefined : partUnseen(`${percent(share)} of the time passed in regions whose ops were not seen.`, "share of time", "not seen", share);
}

/** One value against the limit that it met, where no chain was recorded. */
function beyondLimit(finding: Finding): Picture | undefined {
  const largest = positive(finding, "replay_largest") ?? positive(finding, "largest");
  const input = positive(finding, "largest_input");
  const limit = positive(finding, "limit") ?? floatLimits(word(finding, "to_dtype") ?? word(finding, "dtype") ?? "")?.max ?? fp16.max;
  if (largest === undefined) return undefined;
  const bars: Bar[] = [];
  if (input !== undefined && input !== largest) bars.push({ label: "largest input", amount: input });
  bars.push({ label: "largest value", amount: largest, faulty: largest > limit });
  return logBars(`The largest value is ${number(largest)}; the limit is ${number(limit)}.`, "magnitude", bars, [{ label: "ends at", at: limit }]);
}

function ownPicture(finding: Finding, report: Report): Picture | undefined {
  const scaler = scalersOf(report)[0];
  switch (finding.rule) {
    case "AMP101": return changedDtypes(finding);
    case "AMP102": return summedInHalf(finding);
    case "AMP201":
    case "AMP501": return flushed(finding, report, "fp16");
    case "AMP202": return clipped(finding);
    case "AMP208": return tooLarge(finding);
    case "AMP212": return scheduleAhead(finding);
    case "AMP217": return flushed(finding, report, "bf16");
    case "AMP301":
    case "AMP302":
    case "AMP303":
    case "AMP304": return scaler && scaleFall(scaler, report.run.steps);
    case "AMP901": return hidden(finding);
    case "AMP902": return dropped(finding);
    default: return undefined;
  }
}

export function pictureOf(finding: Finding, report: Report): Picture | undefined {
  return (
    ownPicture(finding, report) ??
    chainPicture(finding.chain, positive(finding, "replay_largest")) ??
    beyondLimit(finding) ??
    stepStrip(finding, report)
  );
}
