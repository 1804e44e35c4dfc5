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

function sentence(chain: readonly ChainLink[], computed: number | undefined): string {
  const culprit = chain.find((link) => link.nonfinite > 0) ?? chain[0];
  if (!culprit) return "";
  const limits = floatLimits(culprit.dtype);
  const largestIn = numeric(culprit.input_absmax);
  const victims = chain.filter(passesOn).length;
  const where = culprit.module ? `${culprit.op} in ${culprit.module}` : culprit.op;
  const passed = victims > 0 ? ` ${counted(victims, "op passes it on", "ops pass it on")}.` : "";
  const overflows = culprit.note.startsWith("overflow");
  const input = largestIn === undefined || !Number.isFinite(largestIn) ? "" : ` from inputs of at most ${number(largestIn)}`;
  const limit = limits && overflows ? `; ${culprit.dtype} ends at ${number(limits.max)}` : "";
  const precise = computed === undefined ? "" : `, in higher precision the result reaches ${number(computed)}`;
  if (culprit.note.startsWith("first used")) {
    return `${where} is the first op to use ${counted(culprit.nonfinite, "non-finite value")} that no op made.${passed}`;
  }
  return `${where} makes ${counted(culprit.nonfinite, "non-finite value")}${input}${limit}${precise}.${passed}`;
}

/** `computed` is the largest magnitude that the first op gives when it is computed again in higher precision. */
export function chainPicture(chain: readonly ChainLink[], computed: number | undefined): Picture | undefined {
  if (chain.length === 0) return undefined;
  const says = sentence(chain, computed);
  const holder = h("div", { class: "chain" });
  const show = (unfolded: boolean) => {
    const stops = stopsOf(chain, unfolded);
    clear(holder);
    holder.append(drawing(says, (svg, width) => draw(svg, width, stops, computed)));
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
  const legend = ["ring: largest magnitude that goes in", "dot: largest finite one that comes out", "red dashes: largest finite value of the op's type"];
  if (computed !== undefined) legend.push("red ring: the result in higher precision");
  return { says, drawing: holder, legend: legend.join(" · ") };
}

const left = 52;
const rowHeight = 232;

function draw(svg: SVGSVGElement, width: number, stops: readonly Stop[], computed: number | undefined): number {
  const fitting = Math.max(1, Math.floor((width - left) / 92));
  const rows = Math.ceil(stops.length / fitting);
  const perRow = Math.ceil(stops.length / rows);
  const logs = computed === undefined ? [] : [Math.log2(computed)];
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
  const culprit = stops.findIndex(({ link }) => link.nonfinite > 0);
  for (let row = 0; row < rows; row += 1) {
    const group = s("g", { transform: `translate(0 ${row * rowHeight})` });
    svg.append(group);
    drawAxis(group, left + Math.min(perRow, stops.length - row * perRow) * columnWidth(width, perRow), low, high);
    for (let i = row * perRow; i < Math.min((row + 1) * perRow, stops.length); i += 1) {
      const stop = stops[i];
      if (stop) drawStop(group, stop, { x: left + (i % perRow) * columnWidth(width, perRow), wide: columnWidth(width, perRow), low, high, culprit: i === culprit, computed: i === culprit ? computed : undefined, more: i + 1 < stops.length });
    }
  }
  return rows * rowHeight - 10;
}

const [top, foot] = [24, 148];

function columnWidth(width: number, perRow: number): number {
  return Math.min((width - left) / perRow, 190);
}

function heightOf(log2: number, low: number, high: number): number {
  return foot - ((Math.min(Math.max(log2, low), high) - low) / (high - low)) * (foot - top);
}

function drawAxis(group: SVGGElement, right: number, low: number, high: number): void {
  const every = Math.max(1, Math.ceil((high - low) / 6));
  for (let k = Math.ceil(low / every) * every; k <= high; k += every) {
    const y = heightOf(k, low, high);
    group.append(s("path", { class: "grid-line", d: `M${left} ${y}H${right}` }), text(left - 6, y + 4, powerOfTwo(k), "end"));
  }
  group.append(s("text", { class: "axis-name", "text-anchor": "middle", transform: `translate(11 ${(top + foot) / 2}) rotate(-90)` }, "largest magnitude"));
}

interface Place {
  x: number;
  wide: number;
  low: number;
  high: number;
  /** Whether the value was born here. */
  culprit: boolean;
  computed: number | undefined;
  /** Whether another stop follows. */
  more: boolean;
}

function drawStop(group: SVGGElement, { link, folded }: Stop, { x, wide, low, high, culprit, computed, more }: Place): void {
  const middle = x + wide / 2;
  const limit = floatLimits(link.dtype);
  if (limit && limit.largest + 1 <= high) {
    const y = heightOf(Math.log2(limit.max), low, high);
    group.append(s("path", { class: "limit", d: `M${x + 4} ${y}H${x + wide - 4}` }));
  }
  const point = (at: number, magnitude: number | undefined) =>
    magnitude !== undefined && magnitude > 0 && Number.isFinite(magnitude) ? { x: at, y: heightOf(Math.log2(magnitude), low, high) } : undefined;
  const circle = (style: string, at: { x: number; y: number } | undefined, words: string) => {
    if (at) group.append(s("circle", { class: style, cx: at.x, cy: at.y, r: 4 }, s("title", {}, words)));
  };
  const input = numeric(link.input_absmax);
  const output = numeric(link.output_absmax);
  const from = point(middle - 16, input);
  const finite = point(middle + 16, output);
  const bad = link.nonfinite > 0;
  const to = bad ? { x: middle + 16, y: top - 10 } : finite;
  if (from && to) group.append(s("path", { class: bad ? "flow flow-out" : "flow", d: `M${from.x} ${from.y}L${to.x} ${to.y}` }));
  circle("value-in", from, `goes in: at most ${number(input ?? NaN)}`);
  circle("value-out", finite, `comes out: finite values of at most ${number(output ?? NaN)}`);
  circle("value-computed", point(middle + 16, computed), `in higher precision: ${number(computed ?? NaN)}`);
  if (bad) {
    group.append(
      s("path", { class: "value-out-of-range", d: `M${middle + 16} ${top - 16}l6 10h-12z` }, s("title", {}, counted(link.nonfinite, "non-finite value"))),
      text(middle + 7, top - 8, "not finite", "end", "limit-label"),
    );
  }
  if (more) group.append(s("path", { class: "arrow-between", d: `M${x + wide - 4} ${foot + 10}l4 4-4 4` }));
  const words: [string, string][] = [
    [link.op, "bar-label"],
    [link.module || link.phase, "tick"],
    [limit ? `${link.dtype}${limit.largest + 1 > high ? ", limit far off" : ""}` : "", "tick"],
    [folded > 0 ? `${link.note}, and ${count(folded)} more` : link.note, culprit ? "note-bad" : "tick"],
  ];
  words.forEach(([content, style], line) => {
    const label = text(middle, foot + 18 + line * 15, fitted(content, wide - (more ? 18 : 4)), "middle", style);
    label.append(s("title", {}, content));
    group.append(label);
  });
}
