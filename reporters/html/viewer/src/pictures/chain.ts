// From where a value was born to where a person sees it: the ops left to right, what went in and what came out of each
// against the largest finite value of the type it was computed in. Ops that only pass it on are folded.
import { clear, h, s } from "../dom";
import { floatLimits } from "../float_limits";
import { count, counted, number, powerOfTwo } from "../format";
import { numeric, type ChainLink } from "../report";
import { drawing, fitted, text, type Picture } from "./picture";

interface Stop {
  link: ChainLink;
  /** Further links folded behind this one. */
  folded: number;
}

function passesOn(link: ChainLink): boolean {
  return link.note.startsWith("pass");
}

/** All links, or with runs of victims folded into the first of them. */
function stopsOf(chain: readonly ChainLink[], unfolded: boolean): Stop[] {
  const stops: Stop[] = [];
  for (const link of chain) {
    const previous = stops[stops.length - 1];
    if (!unfolded && previous && passesOn(link) && passesOn(previous.link)) {
      previous.folded += 1;
    } else {
      stops.push({ link, folded: 0 });
    }
  }
  return stops;
}

function sentence(chain: readonly ChainLink[]): string {
  const culprit = chain.find((link) => link.nonfinite > 0) ?? chain[0];
  if (!culprit) return "";
  const limits = floatLimits(culprit.dtype);
  const largestIn = numeric(culprit.input_absmax);
  const victims = chain.filter(passesOn).length;
  const where = culprit.module ? `${culprit.op} in ${culprit.module}` : culprit.op;
  const input = largestIn === undefined || !Number.isFinite(largestIn) ? "" : ` from inputs of at most ${number(largestIn)}`;
  const limit = limits ? `; ${culprit.dtype} ends at ${number(limits.max)}` : "";
  return `${where} makes ${counted(culprit.nonfinite, "non-finite value")}${input}${limit}.${victims > 0 ? ` ${counted(victims, "op passes it on", "ops pass it on")}.` : ""}`;
}

export function chainPicture(chain: readonly ChainLink[]): Picture | undefined {
  if (chain.length === 0) return undefined;
  const says = sentence(chain);
  const holder = h("div", { class: "chain" });
  const show = (unfolded: boolean) => {
    const stops = stopsOf(chain, unfolded);
    clear(holder);
    holder.append(drawing(says, (svg, width) => draw(svg, width, stops)));
    if (stops.length < chain.length || unfolded) {
      const words = unfolded ? "Fold the ops that pass it on" : `Show all ${count(chain.length)} ops`;
      holder.append(h("button", {
        type: "button",
        click: () => {
          show(!unfolded);
          holder.querySelector("button")?.focus();
        },
      }, words));
    }
  };
  show(false);
  return { says, drawing: holder, legend: "ring: largest magnitude that goes in · dot: largest finite one that comes out · red dashes: largest finite value of the op's type" };
}

function draw(svg: SVGSVGElement, width: number, stops: readonly Stop[]): number {
  const left = 52;
  const perRow = Math.max(1, Math.min(stops.length, Math.floor((width - left) / 118)));
  const rows = Math.ceil(stops.length / perRow);
  const rowHeight = 236;
  const logs: number[] = [];
  for (const { link } of stops) {
    for (const magnitude of [link.input_absmax, link.output_absmax]) {
      const log = Math.log2(numeric(magnitude) ?? NaN);
      if (Number.isFinite(log)) logs.push(log);
    }
  }
  const limits = stops.map(({ link }) => floatLimits(link.dtype)).filter((limit) => limit !== undefined);
  const data = logs.length > 0 ? Math.max(...logs) : 0;
  // The limit of fp32 would press everything else flat; it is told in words where it is far away.
  const near = limits.map((limit) => limit.largest + 1).filter((limit) => limit <= data + 24);
  const high = Math.ceil(Math.max(data, ...near)) + 2;
  const low = Math.floor(Math.min(...(logs.length > 0 ? logs : [0]), 0)) - 1;
  for (let row = 0; row < rows; row += 1) {
    const group = s("g", { transform: `translate(0 ${row * rowHeight})` });
    drawRow(group, width, left, stops.slice(row * perRow, (row + 1) * perRow), perRow, low, high);
    svg.append(group);
  }
  return rows * rowHeight - 10;
}

function drawRow(group: SVGGElement, width: number, left: number, stops: readonly Stop[], perRow: number, low: number, high: number): void {
  const [top, foot] = [22, 148];
  const wide = Math.min((width - left) / perRow, 190);
  const right = left + stops.length * wide;
  const y = (log2: number) => foot - ((Math.min(Math.max(log2, low), high) - low) / (high - low)) * (foot - top);
  const every = Math.max(1, Math.ceil((high - low) / 6));
  for (let k = Math.ceil(low / every) * every; k <= high; k += every) {
    group.append(s("path", { class: "grid-line", d: `M${left} ${y(k)}H${right}` }), text(left - 6, y(k) + 4, powerOfTwo(k), "end"));
  }
  group.append(s("text", { class: "axis-name", "text-anchor": "middle", transform: `translate(11 ${(top + foot) / 2}) rotate(-90)` }, "largest magnitude"));
  stops.forEach(({ link, folded }, i) => {
    const x = left + i * wide;
    const middle = x + wide / 2;
    const input = numeric(link.input_absmax);
    const output = numeric(link.output_absmax);
    const limit = floatLimits(link.dtype);
    const limitY = limit && limit.largest + 1 <= high ? y(Math.log2(limit.max)) : undefined;
    if (limitY !== undefined) group.append(s("path", { class: "limit", d: `M${x + 4} ${limitY}H${x + wide - 4}` }));
    if (i > 0) group.append(s("path", { class: "grid-line", d: `M${x} ${top}V${foot}` }));
    const point = (at: number, magnitude: number | undefined) =>
      magnitude !== undefined && magnitude > 0 && Number.isFinite(magnitude) ? { x: at, y: y(Math.log2(magnitude)) } : undefined;
    const from = point(middle - 18, input);
    const to = link.nonfinite > 0 ? { x: middle + 18, y: top - 8 } : point(middle + 18, output);
    if (from && to) group.append(s("path", { class: link.nonfinite > 0 ? "flow flow-out" : "flow", d: `M${from.x} ${from.y}L${to.x} ${to.y}` }));
    if (from) group.append(s("circle", { class: "value-in", cx: from.x, cy: from.y, r: 4 }, s("title", {}, `in: ${number(input ?? NaN)}`)));
    if (link.nonfinite > 0) {
      group.append(
        s("path", { class: "value-out-of-range", d: `M${middle + 18} ${top - 14}l6 10h-12z` }),
        text(middle + 28, top - 5, "not finite", "start", "limit-label"),
      );
      const finite = point(middle + 18, output);
      if (finite) group.append(s("circle", { class: "value-out", cx: finite.x, cy: finite.y, r: 3.5 }));
    } else if (to) {
      group.append(s("circle", { class: "value-out", cx: to.x, cy: to.y, r: 4 }, s("title", {}, `out: ${number(output ?? NaN)}`)));
    }
    const words = [
      [link.op, "bar-label"],
      [link.module || link.phase, "tick"],
      [`${link.dtype}${limit && limit.largest + 1 > high ? ", limit far off" : ""}`, "tick"],
      [folded > 0 ? `${link.note}, and ${count(folded)} more` : link.note, link.nonfinite > 0 ? "note-bad" : "tick"],
    ] as const;
    words.forEach(([content, style], line) => {
      const label = text(middle, foot + 18 + line * 15, fitted(content, wide - 6), "middle", style);
      label.append(s("title", {}, content));
      group.append(label);
    });
  });
}
