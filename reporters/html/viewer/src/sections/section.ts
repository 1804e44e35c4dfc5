import { h, type Child } from "../dom";

/** A part of the page: its anchor, its heading and, above what it draws, the sentence that says what to see. */
export function section(id: string, title: string, says: string | undefined, ...content: Child[]): HTMLElement {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title`, tabindex: -1 }, title),
    says ? h("p", { class: "says" }, says) : null,
    ...content,
  );
}
