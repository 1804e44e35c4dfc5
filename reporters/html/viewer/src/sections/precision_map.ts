// The modules as a tree, each with the share of its work in fp16, bf16 and fp32, its casts and its headroom.
import { clear, h, type Child } from "../dom";
import { count, counted, number, percent } from "../format";
import { headroomOf, inMap, kinds, moduleTree, type Measure, type ModuleNode, type Work } from "../modules";
import type { Report } from "../report";
import { statusShape } from "../status";
import { section } from "./section";

const rowsUnfolded = 28;

function sentence(work: Work, measure: Measure): string {
  const shares = kinds.filter((kind) => work[kind] > 0).map((kind) => `${percent(work[kind] / work.total)} in ${kind === "other" ? "other types" : kind}`);
  const nearest = work.nearest;
  const headroom = headroomOf(nearest);
  const least =
    nearest === undefined || headroom === undefined
      ? ""
      : headroom <= 0
        ? ` ${nearest.op}${nearest.module ? ` in ${nearest.module}` : ""} reached the limit of its type.`
        : ` The least headroom is ${number(Number(headroom.toFixed(1)))} powers of two, at ${nearest.op}${nearest.module ? ` in ${nearest.module}` : ""}.`;
  return `Of forward and backward, by ${measure === "time" ? "time" : "elements made"}: ${shares.join(", ")}.${least}`;
}

function mix(work: Work): HTMLElement {
  const bar = h("span", { class: "mix", "aria-hidden": "true" });
  for (const kind of kinds) {
    if (work[kind] === 0) continue;
    const part = h("span", { class: `dtype-${kind}` });
    part.style.width = `${(work[kind] / work.total) * 100}%`;
    bar.append(part);
  }
  return bar;
}

class ModuleTree {
  readonly element: HTMLElement;
  readonly #root: ModuleNode;
  readonly #open = new Set<ModuleNode>();
  readonly #body = h("tbody");
  readonly #choose: (path: string, own: boolean) => void;
  #rows: ModuleNode[] = [];
  #current: ModuleNode;

  constructor(root: ModuleNode, choose: (path: string, own: boolean) => void) {
    this.#root = root;
    this.#current = root;
    this.#choose = choose;
    this.#unfoldSome();
    const head = (title: string, hint: string, numeric = true) => h("th", { scope: "col", class: numeric ? "numeric" : null, title: hint || null }, title);
    this.element = h(
      "div",
      { class: "viewport tree" },
      h(
        "table",
        { class: "grid", role: "treegrid", "aria-label": "Precision by module" },
        h("thead", {}, h("tr", {},
          head("module", "", false), head("of all work", "share of the whole program's work"), head("types", "", false),
          head("fp16", "share of its work"), head("bf16", "share of its work"), head("fp32", "share of its work"), head("other", "share of its work"),
          head("casts", "calls that convert a tensor, and calls whose input autocast converts"),
          head("headroom", "powers of two to the largest finite value of the type, at the op that came nearest"))),
        this.#body,
      ),
    );
    this.#draw();
  }

  /** Level by level, while the whole stays short. */
  #unfoldSome(): void {
    let rows = 1;
    const level = [this.#root];
    for (let node = level.shift(); node; node = level.shift()) {
      if (node !== this.#root && rows + node.children.length > rowsUnfolded) continue;
      rows += node.children.length;
      this.#open.add(node);
      level.push(...node.children);
    }
  }

  #draw(): void {
    this.#rows = [];
    const visit = (node: ModuleNode) => {
      this.#rows.push(node);
      if (this.#open.has(node)) node.children.forEach(visit);
    };
    visit(this.#root);
    clear(this.#body);
    this.#body.append(...this.#rows.map((node) => this.#row(node)));
  }

  #row(node: ModuleNode): HTMLTableRowElement {
    const { work } = node;
    const share = (amount: number): string => (work.total === 0 ? "–" : amount === 0 ? "" : percent(amount / work.total));
    const headroom = headroomOf(work.nearest);
    const foldable = node.children.length > 0;
    const name = h("td", { class: "module", title: node.path || null },
      h("span", { class: `fold${foldable ? (this.#open.has(node) ? " fold-open" : " fold-closed") : ""}`, "aria-hidden": "true",
        click: (event: Event) => {
          event.stopPropagation();
          this.#current = node;
          this.#toggle(node);
        } }),
      node.name, node.moduleClass ? h("span", { class: "kind" }, ` ${node.moduleClass}`) : null,
      work.nonfinite > 0 ? h("span", { class: "word-error non-finite" }, statusShape("error", 12), " non-finite") : null);
    name.style.paddingLeft = `${node.depth * 16 + 4}px`;
    const numeric = (content: Child, title: string | null = null) => h("td", { class: "numeric", title }, content);
    return h(
      "tr",
      {
        "aria-level": node.depth + 1, "aria-expanded": foldable ? String(this.#open.has(node)) : null,
        tabindex: node === this.#current ? 0 : -1,
        "aria-description": "Enter shows its ops in the table below",
        click: () => {
          this.#current = node;
          this.#choose(node.path, node.own);
        },
        keydown: (event: KeyboardEvent) => this.#key(event, node),
      },
      name,
      numeric(this.#root.work.total > 0 ? percent(work.total / this.#root.work.total) : "–"),
      h("td", { class: "mix-cell" }, mix(work)),
      numeric(share(work.fp16)), numeric(share(work.bf16)), numeric(share(work.fp32)), numeric(share(work.other)),
      numeric(work.casts > 0 ? count(work.casts) : ""),
      numeric(headroom === undefined ? "" : number(Number(headroom.toFixed(1))), work.nearest ? `${work.nearest.op} ${work.nearest.module}` : null),
    );
  }

  #toggle(node: ModuleNode): void {
    if (node.children.length === 0) return;
    if (!this.#open.delete(node)) this.#open.add(node);
    this.#draw();
    this.#focus();
  }

  #focus(): void {
    const i = this.#rows.indexOf(this.#current);
    (this.#body.children[i] as HTMLElement | undefined)?.focus();
  }

  #moveTo(node: ModuleNode | undefined): void {
    if (!node) return;
    const rows = [...this.#body.children] as HTMLElement[];
    rows[this.#rows.indexOf(this.#current)]?.setAttribute("tabindex", "-1");
    this.#current = node;
    rows[this.#rows.indexOf(node)]?.setAttribute("tabindex", "0");
    this.#focus();
  }

  #key(event: KeyboardEvent, node: ModuleNode): void {
    const at = this.#rows.indexOf(node);
    const open = this.#open.has(node);
    switch (event.key) {
      case "ArrowDown": this.#moveTo(this.#rows[at + 1]); break;
      case "ArrowUp": this.#moveTo(this.#rows[at - 1]); break;
      case "Home": this.#moveTo(this.#rows[0]); break;
      case "End": this.#moveTo(this.#rows[this.#rows.length - 1]); break;
      case "ArrowRight":
        if (node.children.length > 0 && !open) this.#toggle(node);
        else this.#moveTo(node.children[0]);
        break;
      case "ArrowLeft":
        if (open && node.children.length > 0) this.#toggle(node);
        else this.#moveTo(node.parent);
        break;
      case "Enter":
      case " ": this.#choose(node.path, node.own); break;
      default: return;
    }
    event.preventDefault();
  }
}

/** `choose` gets the path of the module whose ops are to be shown. */
export function precisionMap(report: Report, choose: (path: string, own: boolean) => void): HTMLElement {
  const ops = report.ops.filter(inMap);
  if (ops.length === 0) {
    return section("precision", "Precision map", undefined, h("p", { class: "empty" }, "No op of a forward or backward pass was seen."));
  }
  const timed = ops.some((op) => op.time_ns > 0);
  const sentenceLine = h("p", { class: "says" });
  const holder = h("div", {});
  const show = (measure: Measure) => {
    const root = moduleTree(ops, measure);
    sentenceLine.textContent = sentence(root.work, measure);
    holder.replaceChildren(new ModuleTree(root, choose).element);
  };
  const radio = (measure: Measure, words: string, checked: boolean) =>
    h("label", {}, h("input", { type: "radio", name: "measure", value: measure, checked, change: () => show(measure) }), ` ${words}`);
  const sample = (kind: string) => h("span", { class: "key" }, h("span", { class: `sample dtype-${kind}`, "aria-hidden": "true" }), ` ${kind}`);
  show(timed ? "time" : "elements");
  return section(
    "precision",
    "Precision map",
    undefined,
    sentenceLine,
    h("div", { class: "filters" },
      timed ? h("fieldset", {}, h("legend", {}, "work by"), radio("time", "time", true), radio("elements", "elements", false)) : null,
      h("span", { class: "keys" }, ...kinds.map(sample)),
      h("span", { class: "told" }, `${counted(ops.length, "op")}; a click on a module shows its ops below`)),
    holder,
  );
}
