// Quantities that should be alike and are not, or that differ by orders of magnitude, as bars under one another.
import { s } from "../dom";
import { number, superscript } from "../format";
import { drawing, text, type Picture } from "./picture";

export interface Bar {
  label: string;
  amount: number;
  /** The one that is wrong. */
  faulty?: boolean;
}

export interface Limit {
  label: string;
  at: number;
}

/** Bars on a logarithmic axis, named `axis`, with limits drawn through them. All amounts are positive. */
export function logBars(says: string, axis: string, bars: readonly Bar[], limits: readonly Limit[]): Picture {
  const amounts = [...bars.map((bar) => bar.amount), ...limits.map((limit) => limit.at)];
  const low = Math.floor(Math.log10(Math.min(...amounts)) - 0.3);
  const high = Math.ceil(Math.log10(Math.max(...amounts)) + 0.1);
  return {
    says,
    drawing: drawing(says, (svg, width) => {
      const left = Math.min(170, width * 0.34);
      const right = width - 62;
      const top = 18 + limits.length * 16;
      const x = (amount: number) => left + ((Math.log10(amount) - low) / (high - low)) * (right - left);
      const foot = top + bars.length * 30;
      const every = Math.ceil((high - low) / Math.max(2, (right - left) / 52));
      for (let power = low; power <= high; power += every) {
        const at = x(10 ** power);
        svg.append(s("path", { class: "grid-line", d: `M${at} ${top}V${foot}` }), text(at, foot + 14, `10${superscript(String(power))}`, "middle"));
      }
      svg.append(text((left + right) / 2, foot + 30, axis, "middle", "axis-name"));
      bars.forEach((bar, i) => {
        const y = top + i * 30 + 6;
        svg.append(
          text(left - 8, y + 13, bar.label, "end", "bar-label"),
          s("rect", { x: left, y, width: Math.max(1, x(bar.amount) - left), height: 18, class: bar.faulty ? "bar bar-faulty" : "bar" }),
          text(x(bar.amount) + 6, y + 13, number(bar.amount), "start", "bar-value"),
        );
      });
      limits.forEach((limit, i) => {
        const at = x(limit.at);
        const toRight = at < (left + right) / 2;
        svg.append(
          s("path", { class: "limit", d: `M${at} ${10 + i * 16}V${foot}` }),
          text(toRight ? at + 5 : at - 5, 14 + i * 16, `${limit.label} ${number(limit.at)}`, toRight ? "start" : "end", "limit-label"),
        );
      });
      return foot + 36;
    }),
  };
}

/** Bars from 0 on a linear axis. */
export function plainBars(says: string, axis: string, bars: readonly Bar[], spell: (amount: number) => string = number): Picture {
  const most = Math.max(...bars.map((bar) => bar.amount), Number.MIN_VALUE);
  return {
    says,
    drawing: drawing(says, (svg, width) => {
      const left = Math.min(190, width * 0.4);
      const right = width - 70;
      bars.forEach((bar, i) => {
        const y = 4 + i * 28;
        const length = Math.max(1, (bar.amount / most) * (right - left));
        svg.append(
          text(left - 8, y + 13, bar.label, "end", "bar-label"),
          s("rect", { x: left, y, width: length, height: 18, class: bar.faulty ? "bar bar-faulty" : "bar" }),
          text(left + length + 6, y + 13, spell(bar.amount), "start", "bar-value"),
        );
      });
      const foot = 4 + bars.length * 28;
      svg.append(s("path", { class: "axis", d: `M${left} 0V${foot}` }), text(left, foot + 14, axis, "start", "axis-name"));
      return foot + 20;
    }),
  };
}
