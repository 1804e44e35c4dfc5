// The calls that the flight recorder held when the first harmful anomaly froze it, one after the other: how the values
// moved until they were lost.
import { clear, h, responsive, s } from "../dom";
import { floatLimits } from "../float_limits";
import { count, number, powerOfTwo } from "../format";
import { numeric, type FlightRecord, type Op, type RecentCall } from "../report";

const height = 120;
const [top, foot, left] = [16, 104, 52];

interface Strip {
  /** Moves the cursor to a call. */
  select(index: number): void;
  element: HTMLElement;
}

function strip(calls: readonly RecentCall[], picked: (index: number) => void): Strip {
  const svg = s("svg", { class: "picture", "aria-hidden": "true", focusable: "false", height });
  const cursor = s("path", { class: "cursor" });
  const logs = calls.map((call) => Math.log2(numeric(call.absmax) ?? NaN));
  const finite = logs.filter(Number.isFinite);
  const high = Math.ceil(Math.max(...finite, 0)) + 1;
  const low = Math.floor(Math.min(...finite, 0)) - 1;
  let width = 0;
  let selected = 0;
  const xOf = (index: number) => left + ((index + 0.5) / calls.length) * (width - left);
  const yOf = (log2: number) => foot - ((log2 - low) / (high - low)) * (foot - top);
  const place = () => cursor.setAttribute("d", `M${xOf(selected)} ${top - 12}V${foot}`);
  const element = responsive(h("div", { class: "flight-strip", click: (event: MouseEvent) => {
    const at = event.clientX - svg.getBoundingClientRect().left - left;
    if (at >= 0) picked(Math.min(calls.length - 1, Math.floor((at / (width - left)) * calls.length)));
  } }, svg), (now) => {
    width = now;
    clear(svg);
    svg.setAttribute("width", String(width));
    const every = Math.max(1, Math.ceil((high - low) / 4));
    for (let k = Math.ceil(low / every) * every; k <= high; k += every) {
      svg.append(
        s("path", { class: "grid-line", d: `M${left} ${yOf(k)}H${width}` }),
        s("text", { x: left - 6, y: yOf(k) + 4, "text-anchor": "end", class: "tick" }, powerOfTwo(k)),
      );
    }
    calls.forEach((call, index) => {
      const log2 = logs[index] ?? NaN;
      if (call.nonfinite) svg.append(s("path", { class: "value-out-of-range", d: `M${xOf(index)} ${top - 12}l4 8h-8z` }));
      if (Number.isFinite(log2)) svg.append(s("circle", { class: "value-out", cx: xOf(index), cy: yOf(log2), r: 2.2 }));
    });
    svg.append(cursor);
    place();
  });
  return { element, select: (index) => {
    selected = index;
    if (width > 0) place();
  } };
}

/** What a call was and what came out of it, in words. */
function told(call: RecentCall, op: Op | undefined): string {
  const where = op ? [op.op, op.module && `in ${op.module}`, `(${op.phase})`, op.source].filter(Boolean).join(" ") : "a call outside of the op table";
  const dtype = op?.dtype_out ?? op?.dtype_after ?? "";
  const largest = numeric(call.absmax);
  const limit = floatLimits(dtype);
  const range = limit && largest !== undefined && limit.largest < 64 ? `; ${dtype} ends at ${number(limit.max)}` : "";
  const values = call.nonfinite
    ? `NaN or infinity came out${largest === undefined || !(largest > 0) ? "" : `, the largest finite value ${number(largest)}`}`
    : largest === undefined
      ? "its results were not looked at"
      : `largest value ${number(largest)}`;
  return `step ${count(call.step)}: ${where}${dtype ? `, ${dtype}` : ""}: ${values}${range}`;
}

export function flightRecord(record: FlightRecord, ops: ReadonlyMap<number, Op>, number_: number): HTMLElement {
  const { calls } = record;
  const id = `flight-${number_}`;
  const says = h("output", { for: id, class: "flight-call" });
  const slider = h("input", { type: "range", id, min: 0, max: calls.length - 1, step: 1, input: () => show(Number(slider.value)) });
  const chart = strip(calls, (index) => show(index));
  const show = (index: number) => {
    const at = Math.min(Math.max(index, 0), calls.length - 1);
    slider.value = String(at);
    chart.select(at);
    const call = calls[at];
    if (call) {
      const sentence = told(call, ops.get(call.site));
      says.textContent = sentence;
      slider.setAttribute("aria-valuetext", sentence);
    }
  };
  const step = (by: number, words: string) => h("button", { type: "button", click: () => show(Number(slider.value) + by) }, words);
  const firstBad = calls.findIndex((call) => call.nonfinite);
  show(firstBad < 0 ? calls.length - 1 : firstBad);
  return h(
    "details", { class: "more flight" },
    h("summary", {}, `The last ${count(calls.length)} calls up to the anomaly of step ${count(record.step)}, one by one`),
    chart.element,
    h("p", { class: "flight-controls" }, h("label", { for: id, class: "unseen" }, "call"), slider,
      step(-1, "Call before"), step(1, "Next call"),
      firstBad < 0 ? null : h("button", { type: "button", click: () => show(firstBad) }, "First that is not finite")),
    h("p", {}, says),
    h("p", { class: "aside" }, "dot: largest finite magnitude of a call's results · triangle: a NaN or an infinity among them"),
  );
}
