// The report as it stands in the page: contract "ampscope.report/1" (docs/report.schema.json).

/** JSON has no NaN and no infinities; the contract spells them. */
export type Spelled = number | "NaN" | "Infinity" | "-Infinity";

export type Severity = "error" | "warning" | "info";

export interface Culprit {
  op: string | null;
  phase: string | null;
  module: string | null;
  parameter: string | null;
  source: string | null;
  function: string | null;
}

export interface ChainLink {
  step: number;
  op: string;
  phase: string;
  module: string;
  source: string | null;
  dtype: string;
  input_absmax: Spelled | null;
  output_absmax: Spelled | null;
  nonfinite: number;
  note: string;
}

export interface Finding {
  rule: string;
  name: string;
  severity: Severity;
  title: string;
  message: string;
  precision_fault: boolean;
  same_in_fp32: boolean;
  culprit: Culprit;
  steps: { first: number; last: number; count: number };
  evidence: Record<string, Spelled | string>;
  fix: string;
  symptoms: string[];
  proof: string;
  fix_cpp: string | null;
  explained: Finding[];
  chain: ChainLink[];
}

export interface ScalerSettings {
  init_scale: Spelled;
  growth_factor: Spelled;
  backoff_factor: Spelled;
  growth_interval: number;
}

/** A stretch of steps with one scale and no skip, or one skipped step. */
export interface TimelineEntry {
  first_step: number;
  last_step: number;
  scale: Spelled;
  scale_after: Spelled;
  skipped: boolean;
  by_design: boolean;
  parameters: string[];
  /** Updates without a skip since the scale last changed, before the first and after the last step. */
  tracker_before: number;
  tracker_after: number;
  /** The program set the scale itself. */
  assigned: boolean;
  skip: SkipDetail | null;
}

export interface SkipDetail {
  gradients: { parameter: string; nan: number; infinite: number; share: Spelled }[];
  optimizers: { name: string; id: number; taken: boolean }[];
  born: { op: string; phase: string; module: string; source: string | null; as_before: boolean } | null;
  /** null: not known. */
  smaller_scale_helps: boolean | null;
}

export interface Scaler {
  settings: ScalerSettings;
  timeline: TimelineEntry[];
  recommendation: (ScalerSettings & { reason: string }) | null;
  id: number;
  implementation: string | null;
}

export interface Op {
  site: number;
  /** Site of the row that called it; its bytes and time are part of that row's. */
  parent: number | null;
  op: string;
  phase: string;
  module: string;
  module_class: string;
  source: string | null;
  dtype_before: string | null;
  dtype_after: string | null;
  dtype_out: string | null;
  autocast: boolean;
  calls: number;
  bytes: number;
  time_ns: number;
  absmax: Spelled;
  headroom: Spelled | null;
  first_nonfinite_step: number | null;
  nonfinite_calls: number;
  rounding: Rounding | null;
}

/** Distance of an op's results from the same calls in higher precision on the same inputs. */
export interface Rounding {
  dtype: string | null;
  reference: string | null;
  steps: number;
  elements: number;
  mean_ulp: Spelled;
  max_ulp: Spelled;
  worst_value: Spelled;
  worst_reference: Spelled;
  above_one_ulp_share: Spelled;
  relative_error: Spelled;
  overflowed: number;
}

/** A call shortly before an anomaly. */
export interface RecentCall {
  order: number;
  step: number;
  site: number;
  absmax: Spelled | null;
  nonfinite: boolean;
}

export interface FlightRecord {
  step: number;
  calls: RecentCall[];
}

/** counts[i] values v have 2^(first+i) <= |v| < 2^(first+i+1). */
export interface ExponentHistogram {
  first: number;
  counts: number[];
}

/** Gradients of a parameter over some steps, as the optimizer is meant to see them: divided by the loss scale. */
export interface GradientWindow {
  first_step: number;
  last_step: number;
  scale_log2: Spelled;
  count: number;
  zero: number;
  subnormal: number;
  nan: number;
  infinite: number;
  absmax: Spelled;
  exponents: ExponentHistogram;
}

export interface Budget {
  percent: Spelled;
  cost_percent: Spelled | null;
  cost_percent_interval: [Spelled, Spelled] | null;
  operator_steps: number;
  gradient_steps: number;
  full_steps: number;
}

export interface Parameter {
  id: number;
  name: string;
  dtype: string;
  shape: number[];
  count: number;
  module: string;
  optimizer: string | null;
  gradient_absmax: Spelled;
  gradient_zero_share: Spelled;
  gradient_zero_interval: [Spelled, Spelled] | null;
  gradient_subnormal_share: Spelled;
  nonfinite_steps: number;
  gradients: GradientWindow[];
}

export interface Nonfinite {
  step: number;
  order: number;
  kind: string;
  op: string;
  phase: string;
  module: string;
  source: string | null;
  dtype: string;
  nan: number;
  infinite: number;
  elements: number;
}

export interface SeriesPoint {
  object: number | null;
  first_step: number;
  last_step: number;
  count: number;
  nonfinite: number;
  mean: Spelled;
  min: Spelled;
  max: Spelled;
}

export interface Report {
  schema: string;
  tool: { name: string; version: string };
  run: {
    command: string[];
    torch: string | null;
    device: string | null;
    steps: number;
    skipped_steps: number[];
    level: string;
    overhead_ratio: Spelled | null;
    budget: Budget | null;
    dropped: number;
    ranks: number;
    exit_status: number | null;
    precision: string | null;
    language: string | null;
    python: string | null;
    processor: string | null;
    working_directory: string | null;
    started: string | null;
    ended: string | null;
    recorded_by: string | null;
    damaged: boolean;
    switched_off_because: string | null;
    ops: number;
    parameters: number;
    rules: number;
  };
  verdict: "clean" | "info" | "warning" | "error";
  findings: Finding[];
  not_evaluated: { rule: string; name: string; needs: string }[];
  scaler: Scaler | null;
  scalers?: Scaler[];
  ops: Op[];
  parameters: Parameter[];
  nonfinite: Nonfinite[];
  flight_records: FlightRecord[];
  series: { name: string; points: SeriesPoint[] }[];
  hidden: { kind: string; name: string; time_share: Spelled }[];
}

/** The number that `value` spells. */
export function value(spelled: Spelled): number {
  return typeof spelled === "number" ? spelled : Number(spelled);
}

/** The number that `value` spells; undefined for null and for a text that is no number. */
export function numeric(spelled: Spelled | string | null | undefined): number | undefined {
  if (typeof spelled === "number") return spelled;
  if (spelled === "NaN" || spelled === "Infinity" || spelled === "-Infinity") return Number(spelled);
  return undefined;
}

export function scalersOf(report: Report): Scaler[] {
  return report.scalers ?? (report.scaler ? [report.scaler] : []);
}

// Characters that reorder or hide the text around them, and control characters: in a name they can only mislead.
const misleading = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g;

function spelledOut(part: unknown): unknown {
  if (typeof part === "string") {
    return part.replace(misleading, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
  }
  if (Array.isArray(part)) return part.map(spelledOut);
  if (part === null || typeof part !== "object") return part;
  // fromEntries makes an own property of every name, "__proto__" included.
  return Object.fromEntries(Object.entries(part).map(([name, inner]) => [spelledOut(name), spelledOut(inner)]));
}

/** The report that is embedded in the page, with misleading characters written as escapes. */
export function embeddedReport(): Report {
  const text = document.getElementById("report")?.textContent ?? "";
  const report = JSON.parse(text) as Report;
  if (!report.schema.startsWith("ampscope.report/1")) {
    throw new Error(`this page reads reports of version 1, but the one in it says "${report.schema}"`);
  }
  // Reports are large and such names are rare: the walk is spared where JSON holds none, raw or escaped.
  misleading.lastIndex = 0;
  return misleading.test(text) || /\\u(00[01]|20|fe)/.test(text) ? (spelledOut(report) as Report) : report;
}
