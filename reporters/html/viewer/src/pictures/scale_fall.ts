// The loss scale over the steps with its skips: crosses where a skip is not by design, rings where it is.
import { s } from "../dom";
import { count, extent, powerOfTwo } from "../format";
import { value, type Scaler } from "../report";
import { stepTicks } from "../charts/heatmap";
import { scaleSentence } from "../sentences";
import { drawing, text, type Picture } from "./picture";

export function skipMark(x: number, y: number, byDesign: boolean): SVGElement {
  return byDesign
    ? s("circle", { class: "skip-by-design", cx: x, cy: y, r: 3 })
    : s("path", { class: "skip", d: `M${x - 3.5} ${y - 3.5}l7 7m0-7l-7 7` });
}

export function scaleFall(scaler: Scaler, steps: number): Picture | undefined {
  const timeline = scaler.timeline.filter((entry) => value(entry.scale) > 0);
  const first = timeline[0];
  const last = timeline[timeline.length - 1];
  if (!first || !last) return undefined;
  const says = scaleSentence(scaler, steps);
  const logs = timeline.flatMap((entry) => [Math.log2(value(entry.scale)), Math.log2(Math.max(value(entry.scale_after), 2 ** -30))]);
  const [smallest, largest] = extent(logs);
  const low = Math.floor(smallest) - 1;
  const high = Math.ceil(largest) + 1;
  return {
    says,
    drawing: drawing(says, (svg, width) => {
      const [left, right, top, foot] = [52, width - 10, 8, 168];
      const end = last.last_step + 1;
      const x = (step: number) => left + ((step - first.first_step) / Math.max(1, end - first.first_step)) * (right - left);
      const y = (log2: number) => foot - ((log2 - low) / (high - low)) * (foot - top);
      const every = Math.max(1, Math.ceil((high - low) / 7));
      for (let k = Math.ceil(low / every) * every; k <= high; k += every) {
        svg.append(s("path", { class: "grid-line", d: `M${left} ${y(k)}H${right}` }), text(left - 6, y(k) + 4, powerOfTwo(k), "end"));
      }
      for (const step of stepTicks(first.first_step, last.last_step, width / 110)) svg.append(text(x(step), foot + 15, count(step), "middle"));
      let path = "";
      for (const entry of timeline) {
        const at = y(Math.log2(value(entry.scale))).toFixed(1);
        path += `${path ? "L" : "M"}${x(entry.first_step).toFixed(1)} ${at}H${x(entry.last_step + 1).toFixed(1)}`;
      }
      svg.append(s("path", { class: "line", d: path }));
      const taken = new Set<string>();
      for (const entry of timeline) {
        if (!entry.skipped) continue;
        // Of marks that would cover each other one is enough.
        const place = `${Math.round(x(entry.first_step) / 2)} ${entry.scale} ${entry.by_design}`;
        if (taken.has(place)) continue;
        taken.add(place);
        svg.append(skipMark(x(entry.first_step + 0.5), y(Math.log2(value(entry.scale))), entry.by_design));
      }
      svg.append(
        text((left + right) / 2, foot + 31, "step", "middle", "axis-name"),
        s("text", { class: "axis-name", "text-anchor": "middle", transform: `translate(11 ${(top + foot) / 2}) rotate(-90)` }, "loss scale (log2)"),
      );
      const legend = s("g", { transform: `translate(${right - 210} ${foot + 27})` }, skipMark(0, 0, false), text(8, 4, "skipped"), skipMark(78, 0, true), text(86, 4, "skipped by design"));
      if (width > 460) svg.append(legend);
      return foot + 38;
    }),
  };
}
