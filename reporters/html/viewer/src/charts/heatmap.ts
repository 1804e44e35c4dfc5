// Exponent × step as a heat map: darker means a larger share of the step's values. fp16's limits lie over it.
import { clear, h, responsive, s } from "../dom";
import { fp16 } from "../float_limits";
import { count, percent, powerOfTwo, stepRange } from "../format";
import type { GradientMap } from "../gradients";
import { colour, onThemeChange } from "../theme";
import { axisWidth } from "./timeline";

const labelWidth = 176;
const bottom = 36;
const top = 8;
const shades = 64;

type Colour = [number, number, number];

function parseColour(text: string): Colour {
  const digits = text.replace("#", "");
  return [0, 2, 4].map((i) => Number.parseInt(digits.slice(i, i + 2), 16)) as Colour;
}

/** Shade of a share: logarithmic, so that one value in a thousand is still seen. */
export function shade(share: number): number {
  if (share <= 0) return 0;
  return Math.min(1, Math.max(0.06, 1 + Math.log10(share / 0.3) / 4));
}

export class HeatMap {
  readonly element: HTMLElement;
  readonly #canvas = h("canvas", { "aria-hidden": "true" });
  readonly #overlay = s("svg", { class: "overlay", "aria-hidden": "true", focusable: "false" });
  readonly #lines = s("g");
  readonly #cursor = s("rect", { class: "cell-cursor", visibility: "hidden" });
  readonly #readout = h("p", { class: "readout", role: "status" });
  readonly #holder: HTMLElement;
  #map: GradientMap;
  readonly #runScaleLog2: number;
  #scaleLog2: number;
  #width = 0;
  #height = 0;
  #rows = 0;
  #firstRow = 0;
  #pointed: { column: number; exponent: number } | undefined;

  /** `runScaleLog2` is the loss scale whose limits the vertical axis makes room for. */
  constructor(map: GradientMap, label: string, runScaleLog2: number) {
    this.#map = map;
    this.#runScaleLog2 = runScaleLog2;
    this.#scaleLog2 = runScaleLog2;
    this.#holder = h(
      "div",
      {
        class: "heatmap", tabindex: 0, role: "group", "aria-label": label,
        "aria-description": "Arrow keys go from cell to cell and read it out below.",
        keydown: (event: KeyboardEvent) => this.#key(event),
        mousemove: (event: MouseEvent) => this.#hover(event),
        mouseleave: () => this.#point(undefined),
      },
      this.#canvas,
      this.#overlay,
    );
    this.element = h("div", {}, responsive(this.#holder, (width) => this.#layOut(width)), h("div", { class: "below-chart" }, this.#readout));
    this.#point(undefined);
    onThemeChange(() => this.#paint());
  }

  setMap(map: GradientMap): void {
    this.#map = map;
    this.#point(undefined);
    if (this.#width > 0) this.#layOut(this.#width);
  }

  setScale(scaleLog2: number): void {
    this.#scaleLog2 = scaleLog2;
    if (this.#width > 0) this.#drawLimits();
  }

  get #plotWidth(): number {
    return this.#width - axisWidth - (this.#width > 560 ? labelWidth : 12);
  }

  #x(step: number): number {
    const span = this.#map.lastStep + 1 - this.#map.firstStep;
    return axisWidth + ((step - this.#map.firstStep) / span) * this.#plotWidth;
  }

  /** Lower edge of an exponent's row. */
  #y(exponent: number): number {
    return top + (1 - (exponent - this.#firstRow) / this.#rows) * (this.#height - top - bottom);
  }

  #layOut(width: number): void {
    this.#width = width;
    const lowest = this.#map.firstExponent;
    const highest = lowest + this.#map.exponents;
    // Room for the limits where they are near the data. The axis stays put when the slider moves them; a limit that is
    // off it is told at its edge.
    const near = (limit: number) => Math.min(Math.max(limit - this.#runScaleLog2, lowest - 12), highest + 12);
    this.#firstRow = Math.min(lowest, near(fp16.smallestSubnormal)) - 1;
    this.#rows = Math.max(highest, near(fp16.largest + 1)) + 1 - this.#firstRow;
    this.#height = Math.min(Math.max(this.#rows * 7, 220), 380) + top + bottom;
    this.#holder.style.height = `${this.#height}px`;
    this.#overlay.setAttribute("width", String(width));
    this.#overlay.setAttribute("height", String(this.#height));
    this.#paint();
    this.#draw();
  }

  #paint(): void {
    if (this.#width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const plotHeight = this.#height - top - bottom;
    const columns = Math.max(1, Math.round(this.#plotWidth * ratio));
    const lines = Math.max(1, Math.round(plotHeight * ratio));
    Object.assign(this.#canvas, { width: columns, height: lines });
    Object.assign(this.#canvas.style, {
      left: `${axisWidth}px`, top: `${top}px`, width: `${this.#plotWidth}px`, height: `${plotHeight}px`,
    });
    const context = this.#canvas.getContext("2d");
    if (!context) return;
    const from = parseColour(colour("heat-0"));
    const to = parseColour(colour("heat-1"));
    const palette = Array.from({ length: shades + 1 }, (_, i) => from.map((channel, c) => channel + ((to[c] ?? 0) - channel) * (i / shades)));
    const image = context.createImageData(columns, lines);
    const pixels = image.data;
    const exponentOf = Int32Array.from({ length: lines }, (_, y) => Math.floor(this.#firstRow + (1 - (y + 0.5) / lines) * this.#rows));
    const { columns: windows, exponents, firstExponent, counts, firstStep, lastStep } = this.#map;
    const shadesOf = new Uint8Array(exponents);
    let at = 0;
    let shaded = -1;
    for (let x = 0; x < columns; x += 1) {
      const step = firstStep + ((x + 0.5) / columns) * (lastStep + 1 - firstStep);
      while (at + 1 < windows.length && (windows[at]?.lastStep ?? 0) + 1 <= step) at += 1;
      const total = windows[at]?.elements ?? 0;
      if (total === 0) continue;
      if (shaded !== at) {
        shaded = at;
        for (let e = 0; e < exponents; e += 1) {
          shadesOf[e] = Math.round(shade((counts[at * exponents + e] ?? 0) / total) * shades);
        }
      }
      for (let y = 0; y < lines; y += 1) {
        const exponent = (exponentOf[y] ?? 0) - firstExponent;
        const level = exponent >= 0 && exponent < exponents ? (shadesOf[exponent] ?? 0) : 0;
        if (level === 0) continue;
        const [red = 0, green = 0, blue = 0] = palette[level] ?? [];
        const pixel = (y * columns + x) * 4;
        pixels[pixel] = red;
        pixels[pixel + 1] = green;
        pixels[pixel + 2] = blue;
        pixels[pixel + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  }

  #draw(): void {
    clear(this.#overlay);
    const right = axisWidth + this.#plotWidth;
    const foot = this.#height - bottom;
    const text = (x: number, y: number, content: string, anchor: string, style = "tick") =>
      s("text", { x, y, "text-anchor": anchor, class: style }, content);

    this.#overlay.append(s("path", { class: "axis", d: `M${axisWidth} ${top}V${foot}H${right}` }));
    const every = this.#rows > 50 ? 10 : this.#rows > 24 ? 5 : 2;
    for (let exponent = Math.ceil(this.#firstRow / every) * every; exponent <= this.#firstRow + this.#rows; exponent += every) {
      const y = this.#y(exponent);
      this.#overlay.append(s("path", { class: "grid-line", d: `M${axisWidth - 4} ${y}H${axisWidth}` }), text(axisWidth - 7, y + 4, powerOfTwo(exponent), "end"));
    }
    const middle = (top + foot) / 2;
    this.#overlay.append(
      s("text", { class: "axis-name", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" }, "gradient magnitude, unscaled"),
      text((axisWidth + right) / 2, this.#height - 2, "step", "middle", "axis-name"),
    );
    for (const step of stepTicks(this.#map.firstStep, this.#map.lastStep, this.#plotWidth / 110)) {
      const x = this.#x(step + 0.5);
      this.#overlay.append(s("path", { class: "grid-line", d: `M${x} ${foot}v4` }), text(x, foot + 16, count(step), "middle"));
    }
    this.#overlay.append(this.#runLine(), this.#lines, this.#cursor);
    this.#drawLimits();
    this.#placeCursor();
  }

  #drawLimits(): void {
    clear(this.#lines);
    this.#limit("largest", fp16.largest + 1, "fp16 largest 65 504");
    this.#limit("normal", fp16.smallestNormal, "smallest normal 2⁻¹⁴");
    this.#limit("subnormal", fp16.smallestSubnormal, "smallest subnormal 2⁻²⁴");
  }

  /** The smallest subnormal at the loss scale the run had at the time. */
  #runLine(): SVGPathElement {
    let path = "";
    for (const column of this.#map.columns) {
      if (column.elements === 0 || !Number.isFinite(column.scaleLog2)) continue;
      const y = this.#y(fp16.smallestSubnormal - column.scaleLog2);
      if (y > this.#height - bottom || y < top) continue;
      path += `M${this.#x(column.firstStep).toFixed(1)} ${y.toFixed(1)}H${this.#x(column.lastStep + 1).toFixed(1)}`;
    }
    return s("path", { class: "run-line", d: path });
  }

  #limit(name: string, exponent: number, label: string): void {
    const right = axisWidth + this.#plotWidth;
    const foot = this.#height - bottom;
    const y = this.#y(exponent - this.#scaleLog2);
    const narrow = right + 20 > this.#width;
    const at = this.#scaleLog2 === 0 ? label : `${label} / ${powerOfTwo(this.#scaleLog2)}`;
    const words = (where: number, content: string) =>
      s("text", { x: narrow ? right - 4 : right + 6, y: where, "text-anchor": narrow ? "end" : "start", class: "limit-label" }, content);
    if (y < top || y > foot) {
      this.#lines.append(words(y < top ? top + 8 : foot - 3, `${y < top ? "↑" : "↓"} ${label}`));
      return;
    }
    this.#lines.append(
      s("path", { class: "limit", "data-limit": name, d: `M${axisWidth} ${y}H${right}` }),
      words(narrow ? y - 4 : y + 4, at),
    );
  }

  #hover(event: MouseEvent): void {
    const box = this.#holder.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const step = this.#map.firstStep + ((x - axisWidth) / this.#plotWidth) * (this.#map.lastStep + 1 - this.#map.firstStep);
    const column = this.#map.columns.findIndex((candidate) => step >= candidate.firstStep && step < candidate.lastStep + 1);
    const inside = x >= axisWidth && x <= axisWidth + this.#plotWidth && y >= top && y <= this.#height - bottom;
    const exponent = Math.floor(this.#firstRow + (1 - (y - top) / (this.#height - top - bottom)) * this.#rows);
    this.#point(inside && column >= 0 ? { column, exponent } : undefined);
  }

  #key(event: KeyboardEvent): void {
    const moves: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const from = this.#pointed ?? { column: 0, exponent: this.#map.firstExponent + (this.#map.exponents >> 1) };
    this.#point({
      column: Math.min(Math.max(from.column + move[0], 0), this.#map.columns.length - 1),
      exponent: Math.min(Math.max(from.exponent + move[1], this.#firstRow), this.#firstRow + this.#rows - 1),
    });
  }

  #point(cell: { column: number; exponent: number } | undefined): void {
    this.#pointed = cell;
    this.#placeCursor();
    const column = cell && this.#map.columns[cell.column];
    if (!cell || !column) {
      this.#readout.textContent = "Point at a cell to read it. The dotted line is 2⁻²⁴ at the loss scale the run had at that step.";
      return;
    }
    const index = cell.exponent - this.#map.firstExponent;
    const values = index >= 0 && index < this.#map.exponents ? (this.#map.counts[cell.column * this.#map.exponents + index] ?? 0) : 0;
    const facts = [
      stepRange(column.firstStep, column.lastStep),
      `${powerOfTwo(cell.exponent)} to ${powerOfTwo(cell.exponent + 1)}: ${percent(column.elements > 0 ? values / column.elements : 0)} of the values (${count(values)} of ${count(column.elements)})`,
      `zero ${percent(column.elements > 0 ? column.zero / column.elements : 0)}`,
      column.nonfinite > 0 ? `${count(column.nonfinite)} non-finite` : "",
      Number.isFinite(column.scaleLog2) ? `loss scale ${powerOfTwo(column.scaleLog2)}` : "",
    ];
    this.#readout.textContent = facts.filter(Boolean).join(" · ");
  }

  #placeCursor(): void {
    const cell = this.#pointed;
    const column = cell && this.#map.columns[cell.column];
    if (!cell || !column || this.#width === 0) {
      this.#cursor.setAttribute("visibility", "hidden");
      return;
    }
    const x = this.#x(column.firstStep);
    const y = this.#y(cell.exponent + 1);
    const attributes = { x, y, width: Math.max(this.#x(column.lastStep + 1) - x, 2), height: this.#y(cell.exponent) - y, visibility: "visible" };
    for (const [name, content] of Object.entries(attributes)) this.#cursor.setAttribute(name, String(content));
  }
}

/** Round step numbers, about `wanted` of them. */
export function stepTicks(first: number, last: number, wanted: number): number[] {
  const raw = (last - first + 1) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const every = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= raw) ?? 10 * power;
  const ticks: number[] = [];
  for (let step = Math.ceil(first / every) * every; step <= last; step += every) ticks.push(step);
  return ticks;
}
