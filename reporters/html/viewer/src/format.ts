// Numbers as people read them: three significant digits, powers of two where a scale or a limit is meant, shares in
// percent, steps counted from 0.

const thin = "\u202f"; // narrow no-break space, groups digits
const superscripts: Record<string, string> = {
  "-": "⁻", "0": "⁰", "1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵", "6": "⁶", "7": "⁷", "8": "⁸", "9": "⁹", ".": "·",
};

function grouped(digits: string): string {
  const [whole = "", fraction] = digits.split(".");
  // Four digits read well without a gap.
  const withGaps = whole.length <= 4 ? whole : whole.replace(/\B(?=(\d{3})+(?!\d))/g, thin);
  return fraction === undefined ? withGaps : `${withGaps}.${fraction}`;
}

function negative(text: string, value: number): string {
  return value < 0 ? `−${text}` : text;
}

export function superscript(text: string): string {
  return [...text].map((character) => superscripts[character] ?? character).join("");
}

/** A whole number, digits in groups of three. */
export function count(value: number): string {
  return negative(grouped(Math.abs(Math.round(value)).toFixed(0)), value);
}

/** "1 step", "9 steps". */
export function counted(value: number, one: string, many: string = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

function withoutTrailingZeros(digits: string): string {
  return digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
}

/** Three significant digits; from 1000 on all digits of the whole number; very small and very large ones with a power of ten. */
export function number(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 999.5 && magnitude < 1e9) return count(value);
  if (magnitude >= 1e-7 && magnitude < 1e9) {
    const places = Math.max(0, 2 - Math.floor(Math.log10(magnitude)));
    return negative(withoutTrailingZeros(magnitude.toFixed(places)), value);
  }
  const [mantissa = "", exponent = "0"] = magnitude.toExponential(2).split("e");
  return negative(`${withoutTrailingZeros(mantissa)}${thin}×${thin}10${superscript(String(Number(exponent)))}`, value);
}

/** 2 to the power of `exponent`, written as such. */
export function powerOfTwo(exponent: number): string {
  return `2${superscript(String(Math.round(exponent * 10) / 10))}`;
}

/** A loss scale: "65 536 (2¹⁶)" when it is a power of two worth naming. */
export function scale(value: number): string {
  const exponent = Math.log2(value);
  return Number.isInteger(exponent) && Math.abs(exponent) >= 4 ? `${number(value)} (${powerOfTwo(exponent)})` : number(value);
}

/** A share between 0 and 1. A part is never rounded to nothing or to everything. */
export function percent(share: number): string {
  if (Number.isNaN(share)) return "–";
  if (share === 0) return "0 %";
  if (share === 1) return "100 %";
  const value = share * 100;
  if (value < 0.001) return "< 0.001 %";
  if (value > 99.99) return "> 99.99 %";
  if (value >= 99) return `${value.toFixed(2)} %`;
  return `${Number(value.toPrecision(value < 10 ? 2 : 3))} %`;
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  let rest = value;
  while (rest >= 999.5 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? count(rest) : String(Number(rest.toPrecision(3)))} ${units[unit]}`;
}

export function duration(nanoseconds: number): string {
  const units: [number, string][] = [[3_600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  for (const [size, unit] of units) {
    if (nanoseconds >= size) return `${Number((nanoseconds / size).toPrecision(3))} ${unit}`;
  }
  return `${count(nanoseconds)} ns`;
}

/** "step 7" or "steps 0–411". */
export function stepRange(first: number, last: number): string {
  return first === last ? `step ${count(first)}` : `steps ${count(first)}–${count(last)}`;
}

/** A cost ratio: "1.06×". */
export function ratio(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(value < 10 ? 2 : 1)}×` : `${number(value)}×`;
}

/** Unix nanoseconds in the reader's own time zone. */
export function moment(nanoseconds: number): string {
  return new Date(nanoseconds / 1e6).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** Smallest and largest of `values`, which may be too many to spread; NaN takes no part. */
export function extent(values: Iterable<number>): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** "a", "a and b", "a, b and 3 more". */
export function listed(names: readonly string[], shown = 3): string {
  if (names.length === 0) return "";
  if (names.length <= shown) {
    const last = names[names.length - 1] ?? "";
    return names.length === 1 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
  }
  return `${names.slice(0, shown).join(", ")} and ${count(names.length - shown)} more`;
}
