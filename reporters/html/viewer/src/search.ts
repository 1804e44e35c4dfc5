// A search field that keeps the rows that hold every word typed.
import { h } from "./dom";
import { counted } from "./format";

export class Search<Row extends object> {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  readonly #told = h("span", { class: "told", role: "status" });
  readonly #words: (row: Row) => string;
  readonly #texts = new Map<Row, string>();
  #wanted: string[] = [];

  /** `words` of a row are read once; `changed` is called when others may match. */
  constructor(id: string, label: string, words: (row: Row) => string, changed: () => void) {
    this.#words = words;
    this.input = h("input", {
      type: "search", id, placeholder: label, "aria-label": label, autocomplete: "off", spellcheck: "false",
      input: () => {
        this.#wanted = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
        changed();
      },
      keydown: (event: KeyboardEvent) => {
        if (event.key === "Escape") this.clear();
      },
    });
    this.element = h("span", { class: "search" }, this.input, this.#told);
  }

  clear(): void {
    if (this.input.value === "") return;
    this.input.value = "";
    this.input.dispatchEvent(new Event("input"));
  }

  filter(rows: readonly Row[]): readonly Row[] {
    if (this.#wanted.length === 0) return rows;
    return rows.filter((row) => {
      let text = this.#texts.get(row);
      if (text === undefined) {
        text = this.#words(row).toLowerCase();
        this.#texts.set(row, text);
      }
      return this.#wanted.every((word) => text.includes(word));
    });
  }

  /** Says how many rows are left; nothing while nothing is filtered. */
  tell(left: number, of: number): void {
    this.#told.textContent = left === of ? "" : counted(left, "match", "matches");
  }
}
