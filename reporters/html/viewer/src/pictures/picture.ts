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

const ruler = document.createElement("canvas").getContext("2d");

function widthOf(content: string): number {
  if (!ruler) return content.length * 7;
  ruler.font = "12.5px system-ui, -apple-system, 'Segoe UI', sans-serif";
  return ruler.measureText(content).width;
}

/** `content` cut in its middle to `width` pixels: both ends of a path or an op's name tell something. */
export function fitted(content: string, width: number): string {
  if (widthOf(content) <= width) return content;
  let shortened = content;
  for (let kept = content.length - 1; kept > 3 && widthOf(shortened) > width; kept -= 1) {
    const head = Math.ceil(kept * 0.35);
    shortened = `${content.slice(0, head)}…${content.slice(content.length - (kept - head))}`;
  }
  return shortened;
}
