// Where in the run something happens: the whole run as a line, the steps concerned on it.
import { s } from "../dom";
import { count, counted, percent, stepRange } from "../format";
import type { Finding, Report } from "../report";
import { drawing, text, type Picture } from "./picture";

export function stepStrip(finding: Finding, report: Report): Picture | undefined {
  const steps = report.run.steps;
  if (steps < 2) return undefined;
  const { first, last, count: concerned } = finding.steps;
  const says =
    concerned > 1
      ? `${counted(concerned, "step")} of ${count(steps)} (${percent(Math.min(1, concerned / steps))}), ${stepRange(first, last)}.`
      : `It happens in step ${count(first)} of ${count(steps)}.`;
  return {
    says,
    drawing: drawing(says, (svg, width) => {
      const x = (step: number) => 4 + (step / steps) * (width - 8);
      const y = 14;
      svg.append(s("path", { class: "strip", d: `M4 ${y}H${width - 4}` }));
      const ticks = new Set(report.run.skipped_steps.map((skipped) => Math.round(x(skipped + 0.5))));
      svg.append(s("path", { class: "strip-skip", d: [...ticks].map((tick) => `M${tick} ${y + 6}v5`).join("") }));
      svg.append(s("rect", { class: "strip-part", x: x(first), y: y - 5, width: Math.max(3, x(last + 1) - x(first)), height: 10 }));
      svg.append(text(4, y + 26, "step 0"), text(width - 4, y + 26, count(steps - 1), "end"));
      if (report.run.skipped_steps.length > 0) svg.append(text(width / 2, y + 26, "ticks below the line: skipped steps", "middle"));
      return y + 32;
    }),
  };
}
