// The exponent histogram of gradients with what fp16 flushes to zero shaded.
import { s } from "../dom";
import { fp16 } from "../float_limits";
import { percent, powerOfTwo } from "../format";
import { sharesAt, totalsOf } from "../gradients";
import type { Parameter } from "../report";
import { drawing, text, type Picture } from "./picture";

/** `scaleLog2` is the loss scale in use; `recommended` the one that would save most. */
export function flushedHistogram(parameters: readonly Parameter[], whose: string, scaleLog2: number, recommended: number | undefined): Picture | undefined {
  const totals = totalsOf(parameters);
  const { exponents, zero } = totals;
  if (exponents.total === 0 && zero === 0) return undefined;
  const all = exponents.total + zero;
  const shares = sharesAt(exponents, scaleLog2);
  const flushed = exponents.below(fp16.smallestSubnormal - scaleLog2);
  const better = recommended === undefined ? "" : ` At ${powerOfTwo(recommended)} it is ${percent(sharesAt(exponents, recommended).lost)} of those that are not 0.`;
  const says =
    `At loss scale ${powerOfTwo(scaleLog2)}, ${percent(all > 0 ? zero / all : 0)} of ${whose} are exactly 0` +
    (flushed > 0 ? ` and ${percent(shares.lost)} of the others lie below fp16's smallest subnormal.` : " and the others stop at fp16's smallest subnormal.") +
    better;
  const low = Math.min(exponents.first, fp16.smallestSubnormal - scaleLog2) - 1;
  const high = Math.max(exponents.last, fp16.smallestNormal - scaleLog2) + 2;
  return {
    says,
    drawing: drawing(says, (svg, width) => {
      const [left, right, top, foot] = [76, width - 12, 34, 178];
      const bar = (right - left) / (high - low);
      const x = (exponent: number) => left + (exponent - low) * bar;
      let most = zero;
      for (const amount of exponents.counts) most = Math.max(most, amount);
      const tall = (amount: number) => (amount / most) * (foot - top);
      const column = (at: number, wide: number, amount: number, style: string) =>
        s("rect", { x: at, y: foot - tall(amount), width: Math.max(0.8, wide - 1), height: Math.max(amount > 0 ? 1 : 0, tall(amount)), class: style });
      const limit = fp16.smallestSubnormal - scaleLog2;
      const normal = fp16.smallestNormal - scaleLog2;
      svg.append(s("rect", { class: "zone-lost", x: left, y: top, width: Math.max(0, x(limit) - left), height: foot - top }));
      svg.append(column(28, 26, zero, "bar bar-flushed"), text(41, foot + 14, "0", "middle"), text(41, foot - tall(zero) - 5, percent(zero / all), "middle", "bar-value"));
      for (let exponent = exponents.first; exponent <= exponents.last; exponent += 1) {
        const style = exponent < limit ? "bar bar-flushed" : exponent < normal ? "bar bar-subnormal" : "bar";
        svg.append(column(x(exponent), bar, exponents.get(exponent), style));
      }
      const every = Math.max(1, Math.ceil((high - low) / Math.max(3, (right - left) / 58)));
      for (let exponent = Math.ceil(low / every) * every; exponent <= high; exponent += every) svg.append(text(x(exponent), foot + 14, powerOfTwo(exponent), "middle"));
      const line = (exponent: number, label: string, row: number) => {
        const toRight = x(exponent) < (left + right) / 2;
        svg.append(
          s("path", { class: "limit", d: `M${x(exponent)} ${row * 14 + 2}V${foot}` }),
          text(x(exponent) + (toRight ? 5 : -5), row * 14 + 11, label, toRight ? "start" : "end", "limit-label"),
        );
      };
      line(limit, "below: flushed to zero", 0);
      line(normal, "below: subnormal", 1);
      svg.append(
        s("path", { class: "axis", d: `M18 ${foot}H${right}` }),
        text((left + right) / 2, foot + 30, "gradient magnitude, unscaled", "middle", "axis-name"),
        s("text", { class: "axis-name", "text-anchor": "middle", transform: `translate(11 ${(top + foot) / 2}) rotate(-90)` }, "share of values"),
      );
      return foot + 36;
    }),
  };
}
