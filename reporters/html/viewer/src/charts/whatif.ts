// "At loss scale 2^k": a slider under the curve of what fp16 would lose and overflow at every power of two.
import { clear, h, responsive, s } from "../dom";
import { percent, powerOfTwo, number } from "../format";
import { sharesAt, type Exponents, type ScaleMarks, type Shares } from "../gradients";
import { axisWidth, rightMargin } from "./timeline";

const height = 96;
const top = 6;
const floor = 1e-5; // the axis of shares is logarithmic down to one in a hundred thousand

export class WhatIf {
  readonly element: HTMLElement;
  readonly #marks: ScaleMarks;
  readonly #changed: (scaleLog2: number) => void;
  readonly #plot = s("svg", { class: "what-if-plot", height, "aria-hidden": "true", focusable: "false" });
  readonly #markers = s("svg", { class: "what-if-marks", height: 34, "aria-hidden": "true", focusable: "false" });
  readonly #slider: HTMLInputElement;
  readonly #outputs = { lost: h("strong"), imprecise: h("strong"), overflowed: h("strong"), scale: h("strong") };
  readonly #from: number;
  readonly #to: number;
  #exponents: Exponents;
  #width = 0;

  constructor(exponents: Exponents, marks: ScaleMarks, changed: (scaleLog2: number) => void) {
    this.#exponents = exponents;
    this.#marks = marks;
    this.#changed = changed;
    const known = [marks.today, marks.recommended].filter((mark) => mark !== undefined);
    this.#from = Math.floor(Math.min(0, ...known));
    this.#to = Math.ceil(Math.max(24, ...known));
    this.#slider = h("input", {
      type: "range", id: "loss-scale", min: this.#from, max: this.#to, step: 1, value: Math.round(marks.today ?? 0),
      "aria-describedby": "what-if-result",
      input: () => this.#update(true),
    });
    const share = (status: string, word: string, hint: string, output: HTMLElement) =>
      h("span", { class: `share share-${status}`, title: hint }, h("i", { "aria-hidden": "true" }), `${word} `, output);
    this.element = h(
      "div",
      { class: "what-if" },
      h(
        "p",
        { class: "what-if-head" },
        h("label", { for: "loss-scale" }, "at loss scale ", this.#outputs.scale),
        h(
          "output",
          { id: "what-if-result", for: "loss-scale" },
          share("lost", "flushed to zero", "below 2⁻²⁵: half of fp16's smallest subnormal, which rounds to zero", this.#outputs.lost),
          share("imprecise", "subnormal", "below 2⁻¹⁴ but not flushed: kept with fewer significant bits", this.#outputs.imprecise),
          share("overflowed", "overflowed", "2¹⁶ and more: beyond fp16's largest, 65 504", this.#outputs.overflowed),
          h("span", { class: "of-what" }, "of the values that are not 0"),
        ),
      ),
      responsive(h("div", { class: "what-if-chart" }, this.#plot, this.#slider, this.#markers), (width) => this.#draw(width)),
    );
    for (const [name, mark] of Object.entries(marks)) {
      if (mark === undefined) continue;
      const words = name === "today" ? "at the end of this run" : "recommended";
      this.element.append(
        h("button", { type: "button", class: "mark-button", click: () => this.set(Math.round(mark)) }, `${powerOfTwo(mark)}, ${words}`),
      );
    }
    this.element.append(h(
      "p",
      { class: "aside" },
      "Values that fp16 flushed to zero during the run are among the exact zeros, those that overflowed among the non-finite; no scale on this slider brings them back.",
    ));
    this.#update(false);
  }

  get scaleLog2(): number {
    return Number(this.#slider.value);
  }

  set(scaleLog2: number): void {
    this.#slider.value = String(scaleLog2);
    this.#update(true);
  }

  setExponents(exponents: Exponents): void {
    this.#exponents = exponents;
    this.#update(false);
    if (this.#width > 0) this.#draw(this.#width);
  }

  #update(tell: boolean): void {
    const k = this.scaleLog2;
    const shares = sharesAt(this.#exponents, k);
    this.#outputs.scale.textContent = `${powerOfTwo(k)} = ${number(2 ** k)}`;
    for (const name of ["lost", "imprecise", "overflowed"] as const) this.#outputs[name].textContent = percent(shares[name]);
    this.#slider.setAttribute("aria-valuetext", `2 to the power of ${k}`);
    this.#plot.querySelector(".chosen")?.setAttribute("d", this.#chosenLine());
    if (tell) this.#changed(k);
  }

  // The thumb's middle never reaches the ends of the slider: half of its width, 8 px, stays free on both sides.
  #x(k: number): number {
    const left = axisWidth;
    const right = this.#width - rightMargin;
    return left + ((k - this.#from) / (this.#to - this.#from)) * (right - left);
  }

  #y(share: number): number {
    const part = share <= floor ? 0 : 1 - Math.log10(share) / Math.log10(floor);
    return top + (1 - part) * (height - top - 6);
  }

  #chosenLine(): string {
    return this.#width > 0 ? `M${this.#x(this.scaleLog2)} ${top}V${height}` : "";
  }

  #draw(width: number): void {
    this.#width = width;
    clear(this.#plot);
    clear(this.#markers);
    this.#plot.setAttribute("width", String(width));
    this.#markers.setAttribute("width", String(width));
    Object.assign(this.#slider.style, { marginLeft: `${axisWidth - 8}px`, width: `${width - axisWidth - rightMargin + 16}px` });
    for (const share of [1, 0.1, 0.01, 0.001, 1e-4]) {
      const y = this.#y(share);
      this.#plot.append(
        s("path", { class: "grid-line", d: `M${axisWidth} ${y}H${width - rightMargin}` }),
        share === 0.1 || share === 0.001 ? "" : s("text", { class: "tick", x: axisWidth - 7, y: y + 4, "text-anchor": "end" }, percent(share)),
      );
    }
    this.#plot.append(
      s("text", { class: "axis-name", "text-anchor": "middle", transform: `translate(12 ${height / 2}) rotate(-90)` }, "share of values"),
      this.#area("imprecise"),
      this.#area("lost"),
      this.#area("overflowed"),
      s("path", { class: "chosen", d: this.#chosenLine() }),
    );
    const every = width > 700 ? 2 : 4;
    for (let k = this.#from; k <= this.#to; k += 1) {
      if (k % every === 0) this.#markers.append(s("text", { class: "tick", x: this.#x(k), y: 12, "text-anchor": "middle" }, powerOfTwo(k)));
    }
    this.#markers.append(s("text", { class: "axis-name", x: width - rightMargin, y: 30, "text-anchor": "end" }, "loss scale"));
    this.#mark(this.#marks.today, "M0 15l5 8h-10z", "mark-today", "today");
    this.#mark(this.#marks.recommended, "M0 14.5l5 4.5-5 4.5-5-4.5z", "mark-recommended", "recommended");
  }

  /** The curve of a share, where there is any, over its filled area. */
  #area(share: keyof Shares): SVGGElement {
    const foot = this.#y(0);
    const group = s("g", { class: `area area-${share}` });
    let run: string[] = [];
    let start = this.#from;
    const close = (end: number) => {
      if (run.length > 1) {
        const line = run.join("L");
        group.append(s("path", { class: "area-fill", d: `M${this.#x(start)} ${foot}L${line}L${this.#x(end)} ${foot}Z` }), s("path", { class: "area-line", d: `M${line}` }));
      }
      run = [];
    };
    for (let k = this.#from; k <= this.#to; k += 1) {
      const amount = sharesAt(this.#exponents, k)[share];
      const next = k < this.#to ? sharesAt(this.#exponents, k + 1)[share] : 0;
      if (amount === 0 && next === 0) {
        if (run.length > 0) run.push(`${this.#x(k).toFixed(1)} ${foot}`);
        close(k);
        continue;
      }
      if (run.length === 0) start = k;
      run.push(`${this.#x(k).toFixed(1)} ${this.#y(amount).toFixed(1)}`);
    }
    close(this.#to);
    return group;
  }

  #mark(k: number | undefined, shape: string, style: string, word: string): void {
    if (k === undefined) return;
    const x = this.#x(k);
    // Both marks may be close: the words of one stand left of it, of the other right.
    const left = style === "mark-today";
    this.#markers.append(
      s("g", { class: style, transform: `translate(${x} 0)` }, s("path", { d: shape }), s("text", { x: left ? -8 : 8, y: 24, "text-anchor": left ? "end" : "start" }, word)),
    );
  }
}
