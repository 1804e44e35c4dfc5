// Line charts over the steps of the run that share one axis: zoomed together, read together.
import uPlot from "uplot";
import { h, responsive } from "../dom";
import { count } from "../format";
import { colour, onThemeChange } from "../theme";

/** x positions, then one array of y values a line. */
export type ChartData = [number[], ...(number | null)[][]];

export interface Line {
  label: string;
  /** Name of a colour of the style sheet. */
  colour: string;
  stepped?: boolean;
  width?: number;
}

export interface ChartOptions {
  /** Name and unit of the vertical axis. */
  yLabel: string;
  /** What the vertical axis says at a value. */
  yTick(value: number): string;
  /** Ticks stand at whole numbers only (powers of two or ten). */
  wholeTicks?: boolean;
  height: number;
  lines: Line[];
  data: ChartData;
  /** A band between two lines, by their indices. */
  band?: [number, number];
  /** Drawn over the lines. */
  marks?(chart: uPlot, context: CanvasRenderingContext2D): void;
  /** Names the horizontal axis; only the last chart of a stack does. */
  xLabel: boolean;
}

/** What is known of a step, for the line under the charts; null when nothing is pointed at. */
export type Readout = (step: number | null) => string;

export const axisWidth = 68;
export const rightMargin = 16;
const font = "12px system-ui, sans-serif";

/** A stack of charts over steps [first, last]. */
export class Timeline {
  readonly element: HTMLElement;
  readonly #charts: uPlot[] = [];
  readonly #readoutLine: HTMLElement;
  readonly #readout: Readout;
  readonly #first: number;
  readonly #last: number;
  #zooming = false;
  #pointed: number | null = null;

  constructor(label: string, first: number, last: number, charts: readonly ChartOptions[], readout: Readout) {
    this.#first = first;
    this.#last = Math.max(last, first + 1);
    this.#readout = readout;
    this.#readoutLine = h("p", { class: "readout", role: "status" });
    const plots = charts.map((options) => this.#chart(options));
    const button = (text: string, title: string, action: () => void) => h("button", { type: "button", title, click: action }, text);
    this.element = h(
      "div",
      { class: "timeline" },
      h(
        "div",
        {
          class: "plots", tabindex: 0, role: "group", "aria-label": label,
          "aria-description": "Left and right arrows go from step to step, plus and minus zoom, Escape shows the whole run.",
          keydown: (event: KeyboardEvent) => this.#key(event),
        },
        ...plots,
      ),
      h(
        "div",
        { class: "below-chart" },
        this.#readoutLine,
        h(
          "span",
          { class: "tools" },
          button("Zoom in", "Zoom in (+)", () => this.#zoomBy(0.5)),
          button("Zoom out", "Zoom out (−)", () => this.#zoomBy(2)),
          button("Whole run", "Show the whole run (Escape)", () => this.#zoomTo(this.#first, this.#last)),
        ),
      ),
    );
    this.#say(null);
  }

  #chart(options: ChartOptions): HTMLElement {
    let chart: uPlot | undefined;
    const holder = h("div", { class: "plot" });
    const axis = { font, stroke: () => colour("muted"), grid: { stroke: () => colour("faint"), width: 1 }, ticks: { show: false } };
    responsive(holder, (width) => {
      if (chart) {
        chart.setSize({ width, height: options.height });
        return;
      }
      chart = new uPlot(
        {
          width,
          height: options.height,
          padding: [8, rightMargin, options.xLabel ? 0 : 4, 0],
          legend: { show: false },
          cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: true, dist: 4 }, sync: { key: "steps", scales: ["x", null] } },
          scales: { x: { time: false, range: (_chart, min, max) => [min, max] }, y: { range: (_chart, min, max) => padded(min, max, options.wholeTicks ?? false) } },
          axes: [
            {
              ...axis,
              size: options.xLabel ? 22 : 8,
              ...(options.xLabel ? { label: "step", labelFont: font, labelSize: 16, labelGap: 0 } : {}),
              gap: 4,
              incrs: [1, 2, 5].flatMap((digit) => Array.from({ length: 12 }, (_, power) => digit * 10 ** power)).sort((a, b) => a - b),
              values: (_chart, ticks) => ticks.map((tick) => (options.xLabel ? count(tick) : "")),
            },
            {
              ...axis,
              size: axisWidth - 16,
              label: options.yLabel,
              labelFont: font,
              labelSize: 16,
              labelGap: 0,
              gap: 4,
              ...(options.wholeTicks ? { incrs: [1, 2, 4, 5, 10, 20, 50, 100] } : {}),
              values: (_chart, ticks) => ticks.map((tick) => options.yTick(tick)),
            },
          ],
          series: [
            {},
            ...options.lines.map((line): uPlot.Series => ({
              label: line.label,
              stroke: () => colour(line.colour),
              width: line.width ?? 1.5,
              points: { show: (options.data[0].length < 3), size: 5 },
              ...(line.stepped ? { paths: uPlot.paths.stepped?.({ align: 1 }) ?? (() => null) } : {}),
            })),
          ],
          ...(options.band ? { bands: [{ series: options.band, fill: () => colour("accent-soft") }] } : {}),
          hooks: {
            draw: [(drawn) => options.marks?.(drawn, drawn.ctx)],
            setCursor: [(moved) => this.#pointAt(moved)],
            setScale: [
              (scaled, key) => {
                if (key === "x") this.#follow(scaled);
              },
            ],
          },
        },
        options.data,
        holder,
      );
      chart.setScale("x", { min: this.#first, max: this.#last });
      this.#charts.push(chart);
      onThemeChange(() => chart?.redraw(false));
    });
    return holder;
  }

  /** Zooms the other charts to what `zoomed` shows. */
  #follow(zoomed: uPlot): void {
    if (this.#zooming) return;
    const { min, max } = zoomed.scales.x ?? {};
    if (min === undefined || max === undefined) return;
    if (max - min < 1) {
      this.#zoomTo(min, min + 1);
      return;
    }
    this.#zoomTo(min, max);
  }

  #zoomTo(min: number, max: number): void {
    this.#zooming = true;
    const width = Math.min(Math.max(max - min, 1), this.#last - this.#first);
    const from = Math.min(Math.max(min, this.#first), this.#last - width);
    for (const chart of this.#charts) {
      const now = chart.scales.x;
      if (now?.min !== from || now.max !== from + width) chart.setScale("x", { min: from, max: from + width });
    }
    this.#zooming = false;
  }

  #zoomBy(factor: number): void {
    const { min, max } = this.#charts[0]?.scales.x ?? {};
    if (min === undefined || max === undefined) return;
    const middle = this.#pointed !== null && this.#pointed >= min && this.#pointed <= max ? this.#pointed : (min + max) / 2;
    const width = (max - min) * factor;
    this.#zoomTo(middle - width / 2, middle + width / 2);
  }

  #pointAt(chart: uPlot): void {
    const left = chart.cursor.left ?? -1;
    const step = left < 0 ? null : Math.round(chart.posToVal(left, "x"));
    if (step === this.#pointed) return;
    this.#say(step);
  }

  #say(step: number | null): void {
    this.#pointed = step;
    this.#readoutLine.textContent = this.#readout(step);
  }

  #key(event: KeyboardEvent): void {
    const { min, max } = this.#charts[0]?.scales.x ?? {};
    if (min === undefined || max === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const stride = event.shiftKey ? Math.max(1, Math.round((max - min) / 20)) : 1;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const from = this.#pointed ?? Math.round(event.key === "ArrowRight" ? min - stride : max + stride);
      const step = Math.min(Math.max(from + (event.key === "ArrowRight" ? stride : -stride), this.#first), this.#last);
      if (step < min || step > max) this.#zoomTo(step - (max - min) / 2, step + (max - min) / 2);
      this.#say(step);
      for (const chart of this.#charts) {
        chart.setCursor({ left: Math.max(0, chart.valToPos(step, "x")), top: 0 }, false);
      }
    } else if (event.key === "+" || event.key === "=") {
      this.#zoomBy(0.5);
    } else if (event.key === "-") {
      this.#zoomBy(2);
    } else if (event.key === "Escape" || event.key === "0") {
      this.#zoomTo(this.#first, this.#last);
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** Limits of an axis with room around what it shows, also when that is a single value. */
function padded(min: number | null, max: number | null, whole: boolean): [number, number] {
  if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  if (whole) return [Math.floor(min) - 1, Math.ceil(max) + 1];
  const room = max > min ? (max - min) * 0.08 : Math.abs(max) * 0.1 || 1;
  return [min - room, max + room];
}
