// A table of any length: only the rows in sight are in the document. Rows have one height, so that the scrollbar is true.
import { clear, h, type Child } from "./dom";
import { count } from "./format";

export interface Column<Row> {
  key: string;
  title: string;
  /** Shown after the title and read out with it. */
  unit?: string;
  /** Longer words for the title, shown on hover. */
  hint?: string;
  width: number;
  /** Takes the width that is left. */
  grows?: boolean;
  numeric?: boolean;
  /** undefined sorts last in both directions. */
  sort(row: Row): number | string | undefined;
  cell(row: Row): Child;
  /** Whole text of the cell, for hover where it may be cut off. */
  full?(row: Row): string;
}

export interface TableOptions<Row> {
  id: string;
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  sortedBy: string;
  descending: boolean;
  /** Makes rows buttons: called when one is clicked or Enter is pressed in it. */
  activate?(row: Row): void;
  isActive?(row: Row): boolean;
  activateHint?: string;
  empty: string;
}

const rowHeight = 25;
const overscan = 20;
const printedRows = 200;

export class VirtualTable<Row> {
  readonly element: HTMLElement;
  readonly #options: TableOptions<Row>;
  readonly #viewport: HTMLDivElement;
  readonly #body: HTMLTableSectionElement;
  readonly #table: HTMLTableElement;
  readonly #headers = new Map<string, HTMLTableCellElement>();
  readonly #note: HTMLParagraphElement;
  #filtered: readonly Row[];
  #rows: Row[] = [];
  #sortKey: string;
  #descending: boolean;
  #shown = { from: -1, to: -1 };
  #printing = false;

  constructor(options: TableOptions<Row>) {
    this.#options = options;
    this.#filtered = options.rows;
    this.#sortKey = options.sortedBy;
    this.#descending = options.descending;
    this.#body = h("tbody");
    this.#table = h(
      "table",
      { class: "grid", id: options.id },
      h("caption", { class: "unseen" }, options.caption),
      h("colgroup", {}, ...options.columns.map((column) => this.#col(column))),
      h("thead", {}, h("tr", { "aria-rowindex": 1 }, ...options.columns.map((column) => this.#header(column)))),
      this.#body,
    );
    this.#table.style.minWidth = `${options.columns.reduce((sum, column) => sum + column.width, 0)}px`;
    this.#viewport = h(
      "div",
      { class: "viewport", tabindex: 0, role: "region", "aria-label": `${options.caption}, table`, scroll: () => this.#draw(false) },
      this.#table,
    );
    this.#note = h("p", { class: "empty" });
    this.element = h("div", { class: "table" }, this.#viewport, this.#note);
    new ResizeObserver(() => this.#draw(false)).observe(this.#viewport);
    // A printer cannot scroll: the first rows are laid out whole, and the rest is said to be missing.
    window.addEventListener("beforeprint", () => this.#print(true));
    window.addEventListener("afterprint", () => this.#print(false));
    this.#sort();
  }

  /** Shows these rows, in the order chosen. */
  setRows(rows: readonly Row[]): void {
    this.#filtered = rows;
    this.#sort();
    this.#viewport.scrollTop = 0;
    this.#draw(true);
  }

  /** Draws the rows in sight again, after something their cells show has changed; sorts when it is sorted by that. */
  refresh(changed: readonly string[] = []): void {
    if (changed.includes(this.#sortKey)) this.#sort();
    this.#draw(true);
  }

  #col(column: Column<Row>): HTMLTableColElement {
    const col = h("col");
    if (!column.grows) col.style.width = `${column.width}px`;
    return col;
  }

  #header(column: Column<Row>): HTMLTableCellElement {
    const button = h(
      "button",
      { type: "button", title: column.hint ?? null, click: () => this.#sortBy(column.key) },
      column.title,
      column.unit ? h("span", { class: "unit" }, ` ${column.unit}`) : null,
      h("span", { class: "arrow", "aria-hidden": "true" }),
    );
    const cell = h("th", { scope: "col", class: column.numeric ? "numeric" : null }, button);
    this.#headers.set(column.key, cell);
    return cell;
  }

  #sortBy(key: string): void {
    if (key === this.#sortKey) {
      this.#descending = !this.#descending;
    } else {
      this.#sortKey = key;
      this.#descending = this.#options.columns.find((column) => column.key === key)?.numeric ?? false;
    }
    this.#sort();
    this.#viewport.scrollTop = 0;
    this.#draw(true);
  }

  #sort(): void {
    for (const [key, cell] of this.#headers) {
      cell.setAttribute("aria-sort", key !== this.#sortKey ? "none" : this.#descending ? "descending" : "ascending");
    }
    const column = this.#options.columns.find((candidate) => candidate.key === this.#sortKey);
    if (!column) {
      this.#rows = [...this.#filtered];
      return;
    }
    const direction = this.#descending ? -1 : 1;
    const keyed = this.#filtered.map((row, i) => ({ row, i, key: column.sort(row) }));
    keyed.sort((a, b) => {
      if (a.key === undefined || b.key === undefined) {
        return a.key === b.key ? a.i - b.i : a.key === undefined ? 1 : -1;
      }
      if (a.key === b.key) return a.i - b.i;
      return a.key < b.key ? -direction : direction;
    });
    this.#rows = keyed.map((entry) => entry.row);
  }

  #draw(force: boolean): void {
    const total = this.#rows.length;
    const height = this.#viewport.clientHeight || 20 * rowHeight;
    const top = this.#viewport.scrollTop;
    const firstInSight = Math.floor(top / rowHeight);
    const lastInSight = Math.min(total, Math.ceil((top + height) / rowHeight));
    if (!force && this.#shown.from <= firstInSight && lastInSight <= this.#shown.to) return;
    const from = this.#printing ? 0 : Math.max(0, firstInSight - overscan);
    const to = Math.min(total, this.#printing ? printedRows : lastInSight + overscan);
    this.#shown = { from, to };
    this.#table.setAttribute("aria-rowcount", String(total + 1));
    const focused = this.#body.contains(document.activeElement)
      ? Number(document.activeElement?.closest("tr")?.getAttribute("aria-rowindex"))
      : undefined;
    clear(this.#body);
    if (from > 0) this.#body.append(this.#spacer(from));
    for (let i = from; i < to; i += 1) {
      const row = this.#rows[i];
      if (row !== undefined) this.#body.append(this.#row(row, i));
    }
    if (to < total && !this.#printing) this.#body.append(this.#spacer(total - to));
    if (focused !== undefined) this.#focusRow(focused);
    this.#viewport.hidden = total === 0;
    this.#note.hidden = total > 0 && !(this.#printing && total > printedRows);
    this.#note.textContent =
      total === 0 ? this.#options.empty : `… and ${count(total - printedRows)} more rows, which are in the report but not on paper.`;
  }

  #spacer(rows: number): HTMLTableRowElement {
    const spacer = h("tr", { "aria-hidden": "true", class: "spacer" }, h("td", { colspan: this.#options.columns.length }));
    spacer.style.height = `${rows * rowHeight}px`;
    return spacer;
  }

  #row(row: Row, index: number): HTMLTableRowElement {
    const { activate, isActive, activateHint } = this.#options;
    const element = h("tr", { "aria-rowindex": index + 2, class: isActive?.(row) ? "active" : null });
    this.#options.columns.forEach((column, i) => {
      const full = column.full?.(row) ?? null;
      const content = column.cell(row);
      // Zeros say little; what is not zero stands out among them.
      const nothing = content === "0" || content === "0 %" || content === "–";
      const cell = h("td", { class: column.numeric ? (nothing ? "numeric nothing" : "numeric") : null, title: full });
      if (i === 0 && activate) {
        cell.append(
          h("button", {
            type: "button", class: "row-button", title: full, "aria-pressed": isActive ? String(isActive(row)) : null,
            "aria-description": activateHint ?? null,
            click: (event: Event) => {
              event.stopPropagation();
              activate(row);
            },
            keydown: (event: KeyboardEvent) => this.#move(event, index),
          }, content),
        );
      } else if (content) {
        cell.append(content);
      }
      element.append(cell);
    });
    if (activate) element.addEventListener("click", () => activate(row));
    return element;
  }

  #move(event: KeyboardEvent, index: number): void {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const target = Math.min(Math.max(index + step, 0), this.#rows.length - 1);
    const headHeight = this.#table.tHead?.offsetHeight ?? 0;
    const top = target * rowHeight;
    if (top < this.#viewport.scrollTop) this.#viewport.scrollTop = top;
    const overflow = top + rowHeight + headHeight - (this.#viewport.scrollTop + this.#viewport.clientHeight);
    if (overflow > 0) this.#viewport.scrollTop += overflow;
    this.#draw(true);
    this.#focusRow(target + 2);
  }

  #focusRow(rowIndex: number): void {
    this.#body.querySelector<HTMLElement>(`tr[aria-rowindex="${rowIndex}"] .row-button`)?.focus({ preventScroll: true });
  }

  #print(printing: boolean): void {
    this.#printing = printing;
    this.#draw(true);
  }
}
