// A status is told three times: by word, by shape, by colour.
import { s } from "./dom";

export type Status = "error" | "warning" | "info" | "clean";

export const statusWords: Record<Status, string> = { error: "error", warning: "warning", info: "note", clean: "clean" };

/** An octagon with a cross, a triangle with a bar, a ring with an i, a disc with a tick. Always stands beside its word. */
export function statusShape(status: Status, size = 15): SVGSVGElement {
  const svg = s("svg", {
    class: `shape shape-${status}`, width: size, height: size, viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false",
  });
  const mark = (d: string) => s("path", { d, class: "shape-mark" });
  if (status === "error") {
    svg.append(s("path", { d: "M5 .5h6L15.5 5v6L11 15.5H5L.5 11V5z" }), mark("M5 5l6 6M11 5l-6 6"));
  } else if (status === "warning") {
    svg.append(s("path", { d: "M8 .8L15.8 15H.2z" }), mark("M8 5.6v4.2M8 11.6v1.6"));
  } else if (status === "info") {
    svg.append(s("circle", { cx: 8, cy: 8, r: 6.6, class: "shape-ring" }), s("path", { d: "M8 7.2v4M8 4.4v1.2", class: "shape-line" }));
  } else {
    svg.append(s("circle", { cx: 8, cy: 8, r: 7.5 }), mark("M4.4 8.3l2.6 2.6 4.7-5.2"));
  }
  return svg;
}
