// What a finding claims, drawn: a sentence that says what to see, and the drawing.
import { h, responsive, s, clear } from "../dom";

export interface Picture {
  says: string;
  drawing: HTMLElement;
  /** What its marks mean, where the drawing does not say so itself. */
  legend?: string;
}

/** An SVG drawn anew for the width it has. `draw` returns its height. */
export function drawing(label: string, draw: (svg: SVGSVGElement, width: number) => number): HTMLElement {
  const svg = s("svg", { role: "img", "aria-label": label, class: "picture" });
  return responsive(h("div", {}, svg), (width) => {
    clear(svg);
    const height = draw(svg, width);
    svg.setAttribute("width", String(width));
    svg.setAttribute("height", String(height));
  });
}

export function text(x: number, y: number, content: string, anchor: "start" | "middle" | "end" = "start", style = "tick"): SVGTextElement {
  return s("text", { x, y, "text-anchor": anchor, class: style }, content);
}

/** `content` cut in its middle to about `width` pixels: both ends of a path or an op's name tell something. */
export function fitted(content: string, width: number, perCharacter = 6.6): string {
  const room = Math.max(4, Math.floor(width / perCharacter));
  if (content.length <= room) return content;
  const head = Math.ceil((room - 1) * 0.35);
  return `${content.slice(0, head)}…${content.slice(content.length - (room - 1 - head))}`;
}
