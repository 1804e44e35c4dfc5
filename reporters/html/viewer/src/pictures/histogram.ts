// The exponent histogram of gradients against the limits of a type, with what the type flushes to zero shaded.
import { s } from "../dom";
import type { FloatLimits } from "../float_limits";
import { percent, powerOfTwo } from "../format";
import { totalsOf } from "../gradients";
import type { Parameter } from "../report";
import { drawing, text, type Picture } from "./picture";

export interface Flushed {
  parameters: readonly Parameter[];
  dtype: string;
  limits: FloatLimits;
  /** The loss scale in use. */
  scaleLog2: number;
  /** Estimated share of all values that was flushed: part of the exact zeros. */
  share: number;
  /** A scale that keeps what is lost. */
  fits: number | undefined;
}

export function flushedHistogram({ parameters, dtype, limits, scaleLog2, share, fits }: Flushed): Picture | undefined {
  const { exponents, zero } = totalsOf(parameters);
  const all = exponents.total + zero;
  if (all === 0) return undefined;
  const flushed = Math.min(share * all, zero);
  // What stands below half of the smallest subnormal did not pass through the type.
  const limit = limits.smallestSubnormal - 1 - scaleLog2;
  const normal = limits.smallestNormal - scaleLog2;
  const says =
    `${percent(zero / all)} of the gradient values are exactly 0` +
    (flushed > 0 ? `, about ${percent(flushed / all)} because ${dtype} flushed them.` : ".") +
    ` At loss scale ${powerOfTwo(scaleLog2)} ${dtype} keeps nothing below ${powerOfTwo(limit)}` +
    (fits === undefined ? "." : `; at ${powerOfTwo(Math.log2(fits))} it keeps values down to ${powerOfTwo(limits.smallestSubnormal - 1 - Math.log2(fits))}.`);
  const low = Math.min(exponents.total > 0 ? exponents.first : limit, limit) - 3;
  const high = Math.max(exponents.total > 0 ? exponents.last : normal, normal) + 2;
  return {
    says,
    drawing: drawing(says, (svg, width) => {
      const [left, right, top, foot] = [118, width - 12, 36, 184];
      const bar = (right - left) / (high - low);
      const x = (exponent: number) => left + (exponent - low) * bar;
      let most = zero;
      for (const amount of exponents.counts) most = Math.max(most, amount);
      const tall = (amount: number) => (amount / most) * (foot - top);
      const column = (at: number, wide: number, amount: number, style: string, base = 0) =>
        s("rect", { x: at, y: foot - base - tall(amount), width: Math.max(0.8, wide - 1), height: tall(amount), class: style });
      svg.append(s("rect", { class: "zone-lost", x: left, y: top, width: Math.max(0, x(limit) - left), height: foot - top }));
      svg.append(
        column(30, 28, flushed, "bar bar-flushed"),
        column(30, 28, zero - flushed, "zeros-kept", tall(flushed)),
        text(44, foot + 15, "0", "middle"),
        text(44, foot - tall(zero) - 5, percent(zero / all), "middle", "bar-value"),
      );
      for (let exponent = exponents.first; exponent <= exponents.last; exponent += 1) {
        const style = exponent < limit ? "bar bar-flushed" : exponent < normal ? "bar bar-subnormal" : "bar";
        svg.append(column(x(exponent), bar, exponents.get(exponent), style));
      }
      for (const part of [0.5, 1]) {
        svg.append(s("path", { class: "grid-line", d: `M${left} ${foot - part * (foot - top)}H${right}` }), text(left - 4, foot - part * (foot - top) + 4, percent((part * most) / all), "end"));
      }
      const every = Math.max(1, Math.ceil((high - low) / Math.max(3, (right - left) / 58)));
      for (let exponent = Math.ceil(low / every) * every; exponent <= high; exponent += every) svg.append(text(x(exponent), foot + 15, powerOfTwo(exponent), "middle"));
      const line = (exponent: number, label: string, row: number) => {
        const toRight = x(exponent) < (left + right) / 2;
        svg.append(
          s("path", { class: "limit", d: `M${x(exponent)} ${row * 15 + 2}V${foot}` }),
          text(x(exponent) + (toRight ? 5 : -5), row * 15 + 12, label, toRight ? "start" : "end", "limit-label"),
        );
      };
      line(limit, `${dtype} flushes to zero below`, 0);
      line(normal, `${dtype} subnormal below`, 1);
      svg.append(
        s("path", { class: "axis", d: `M20 ${foot}H${right}` }),
        text((left + right) / 2, foot + 32, "gradient magnitude, unscaled", "middle", "axis-name"),
        s("text", { class: "axis-name", "text-anchor": "middle", transform: `translate(11 ${(top + foot) / 2}) rotate(-90)` }, "share of values"),
      );
      return foot + 38;
    }),
    legend: "red: flushed to zero · light: subnormal, or exactly 0 for another reason · blue: full precision",
  };
}
