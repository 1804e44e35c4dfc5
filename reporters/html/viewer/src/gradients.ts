// Gradient values over steps, and what fp16 would keep of them at another loss scale. Everything stands on the exact
// exponent histograms of the unscaled gradients: at loss scale 2^k the backward pass holds them multiplied by 2^k.
import { fp16 } from "./float_limits";
import { value, type Parameter, type Report } from "./report";

/** How many values have each binary exponent. */
export class Exponents {
  readonly first: number;
  readonly counts: Float64Array;
  readonly total: number;
  readonly #below: Float64Array;

  constructor(first: number, counts: Float64Array) {
    this.first = first;
    this.counts = counts;
    this.#below = new Float64Array(counts.length + 1);
    for (let i = 0; i < counts.length; i += 1) this.#below[i + 1] = (this.#below[i] ?? 0) + (counts[i] ?? 0);
    this.total = this.#below[counts.length] ?? 0;
  }

  get last(): number {
    return this.first + this.counts.length - 1;
  }

  get(exponent: number): number {
    return this.counts[exponent - this.first] ?? 0;
  }

  /** Values with an exponent strictly below `exponent`. */
  below(exponent: number): number {
    const i = Math.min(Math.max(exponent - this.first, 0), this.counts.length);
    return this.#below[i] ?? 0;
  }

  atLeast(exponent: number): number {
    return this.total - this.below(exponent);
  }
}

/** Of the values that are not 0 and finite. */
export interface Shares {
  /** Below half of fp16's smallest subnormal number, which rounds to zero. */
  lost: number;
  /** Subnormal, or rounded up to the smallest one: kept with fewer significant bits. */
  imprecise: number;
  /** At or beyond 2^16, which is more than fp16's largest. */
  overflowed: number;
}

/** Exponent below which fp16 rounds an unscaled value to zero: half of the smallest subnormal is the last that it keeps. */
export function flushedBelow(scaleLog2: number): number {
  return fp16.smallestSubnormal - 1 - scaleLog2;
}

export function sharesAt(exponents: Exponents, scaleLog2: number): Shares {
  if (exponents.total === 0) return { lost: 0, imprecise: 0, overflowed: 0 };
  const lost = exponents.below(flushedBelow(scaleLog2));
  return {
    lost: lost / exponents.total,
    imprecise: (exponents.below(fp16.smallestNormal - scaleLog2) - lost) / exponents.total,
    overflowed: exponents.atLeast(fp16.largest + 1 - scaleLog2) / exponents.total,
  };
}

export interface GradientTotals {
  exponents: Exponents;
  elements: number;
  zero: number;
  nonfinite: number;
}

/** All windows of `parameters` in one. */
export function totalsOf(parameters: readonly Parameter[]): GradientTotals {
  let low = Infinity;
  let high = -Infinity;
  for (const parameter of parameters) {
    for (const { exponents } of parameter.gradients) {
      if (exponents.counts.length === 0) continue;
      low = Math.min(low, exponents.first);
      high = Math.max(high, exponents.first + exponents.counts.length);
    }
  }
  const counts = new Float64Array(high > low ? high - low : 0);
  let elements = 0;
  let zero = 0;
  let nonfinite = 0;
  for (const parameter of parameters) {
    for (const window of parameter.gradients) {
      elements += window.count;
      zero += window.zero;
      nonfinite += window.nan + window.infinite;
      const offset = window.exponents.first - low;
      const from = window.exponents.counts;
      for (let i = 0; i < from.length; i += 1) counts[offset + i] = (counts[offset + i] ?? 0) + (from[i] ?? 0);
    }
  }
  return { exponents: new Exponents(high > low ? low : 0, counts), elements, zero, nonfinite };
}

/** One column of the heat map. */
export interface Column {
  firstStep: number;
  lastStep: number;
  scaleLog2: number;
  elements: number;
  zero: number;
  nonfinite: number;
}

/** Exponent × step, row by row from the smallest exponent. */
export interface GradientMap {
  columns: Column[];
  firstExponent: number;
  exponents: number;
  /** counts[column * exponents + (exponent - firstExponent)] */
  counts: Float64Array;
  firstStep: number;
  lastStep: number;
}

/**
 * Lays the windows of `parameters` side by side. Where parameters were watched over different windows, all of their
 * edges divide the steps, and a window stands in each piece that it covers: shares within a column stay comparable.
 */
export function gradientMap(parameters: readonly Parameter[]): GradientMap | undefined {
  const edges = new Set<number>();
  let low = Infinity;
  let high = -Infinity;
  for (const parameter of parameters) {
    for (const window of parameter.gradients) {
      edges.add(window.first_step);
      edges.add(window.last_step + 1);
      if (window.exponents.counts.length > 0) {
        low = Math.min(low, window.exponents.first);
        high = Math.max(high, window.exponents.first + window.exponents.counts.length);
      }
    }
  }
  if (high <= low) return undefined;
  const bounds = Float64Array.from(edges).sort();
  const columnOf = new Map<number, number>();
  const columns: Column[] = [];
  for (let i = 0; i + 1 < bounds.length; i += 1) {
    columnOf.set(bounds[i] ?? 0, i);
    columns.push({
      firstStep: bounds[i] ?? 0, lastStep: (bounds[i + 1] ?? 0) - 1, scaleLog2: NaN, elements: 0, zero: 0, nonfinite: 0,
    });
  }
  const exponents = high - low;
  const counts = new Float64Array(columns.length * exponents);
  for (const parameter of parameters) {
    for (const window of parameter.gradients) {
      const { first, counts: from } = window.exponents;
      for (let c = columnOf.get(window.first_step) ?? 0; c < columns.length; c += 1) {
        const column = columns[c];
        if (!column || column.firstStep > window.last_step) break;
        const offset = c * exponents + first - low;
        for (let i = 0; i < from.length; i += 1) counts[offset + i] = (counts[offset + i] ?? 0) + (from[i] ?? 0);
        column.scaleLog2 = value(window.scale_log2);
        column.elements += window.count;
        column.zero += window.zero;
        column.nonfinite += window.nan + window.infinite;
      }
    }
  }
  const watched = columns.filter((column) => column.elements > 0);
  return {
    columns, firstExponent: low, exponents, counts,
    firstStep: watched[0]?.firstStep ?? 0, lastStep: watched[watched.length - 1]?.lastStep ?? 0,
  };
}

/** Powers of two that matter on the slider: the scale in use at the end of the run and the recommended one. */
export interface ScaleMarks {
  today: number | undefined;
  recommended: number | undefined;
}

export function scaleMarks(report: Report): ScaleMarks {
  const scaler = report.scaler;
  const last = scaler?.timeline[scaler.timeline.length - 1];
  const log2 = (scale: number | undefined) => (scale !== undefined && scale > 0 && Number.isFinite(scale) ? Math.log2(scale) : undefined);
  return {
    today: log2(last ? value(last.scale_after) : undefined),
    recommended: log2(scaler?.recommendation ? value(scaler.recommendation.init_scale) : undefined),
  };
}
