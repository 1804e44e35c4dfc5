// The parameters as a table, with what fp16 would lose of each one's gradients at the slider's loss scale.
import { h } from "../dom";
import { count, counted, number, percent, powerOfTwo } from "../format";
import { sharesAt, totalsOf, type GradientTotals, type Shares } from "../gradients";
import { Search } from "../search";
import { value, type Parameter, type Report } from "../report";
import { VirtualTable, type Column } from "../table";
import { section } from "./section";

interface Row {
  parameter: Parameter;
  totals: GradientTotals;
  shares: Shares;
}

const atScale = ["lost", "imprecise", "overflowed"] as const;

export class ParameterTable {
  readonly #rows: Row[];
  readonly #table: VirtualTable<Row>;
  readonly #sentence = h("p", { class: "says", id: "parameters-says" });
  #chosen: Parameter | undefined;

  /** `choose` is called with the parameter whose gradients are to be shown, or with undefined for all. */
  constructor(report: Report, choose: (parameter: Parameter | undefined) => void) {
    this.#rows = report.parameters.map((parameter) => {
      const totals = totalsOf([parameter]);
      return { parameter, totals, shares: sharesAt(totals.exponents, 0) };
    });
    this.#table = new VirtualTable<Row>({
      id: "parameter-table",
      caption: "Parameters and their gradients",
      columns: columns(),
      rows: this.#rows,
      sortedBy: "lost",
      descending: true,
      activate: (row) => choose(row.parameter === this.#chosen ? undefined : row.parameter),
      isActive: (row) => row.parameter === this.#chosen,
      activateHint: "shows its gradients in the chart above",
      empty: report.parameters.length === 0 ? "No parameter was seen." : "No parameter matches.",
    });
    this.#say(0);
  }

  section(): HTMLElement {
    const search = new Search<Row>(
      "parameter-search",
      "Search parameters",
      ({ parameter }) => `${parameter.name} ${parameter.module} ${parameter.dtype} ${parameter.optimizer ?? ""}`,
      () => {
        const rows = search.filter(this.#rows);
        search.tell(rows.length, this.#rows.length);
        this.#table.setRows(rows);
      },
    );
    return section("parameters", "Parameters", undefined, this.#sentence, this.#rows.length > 0 ? h("p", { class: "filters" }, search.element) : null, this.#table.element);
  }

  setScale(scaleLog2: number): void {
    for (const row of this.#rows) row.shares = sharesAt(row.totals.exponents, scaleLog2);
    this.#say(scaleLog2);
    this.#table.refresh(atScale);
  }

  setChosen(parameter: Parameter | undefined): void {
    this.#chosen = parameter;
    this.#table.refresh();
  }

  #say(scaleLog2: number): void {
    const lossy = this.#rows.filter((row) => row.shares.lost >= 0.01).length;
    const over = this.#rows.filter((row) => row.shares.overflowed > 0).length;
    const watched = this.#rows.filter((row) => row.totals.elements > 0).length;
    this.#sentence.textContent =
      this.#rows.length === 0
        ? ""
        : watched === 0
        ? `${counted(this.#rows.length, "parameter")}; no gradient was looked at.`
        : `At loss scale ${powerOfTwo(scaleLog2)}, ${count(lossy)} of ${counted(this.#rows.length, "parameter")} would lose at least 1 % of the gradient values that are not 0, ` +
          `and ${count(over)} would overflow. Choose one to see its gradients above.`;
  }
}

function columns(): Column<Row>[] {
  const share = (key: keyof Shares, title: string, hint: string): Column<Row> => ({
    key, title, hint, width: 110, numeric: true,
    sort: (row) => (row.totals.exponents.total > 0 ? row.shares[key] : undefined),
    cell: (row) => (row.totals.exponents.total > 0 ? percent(row.shares[key]) : "–"),
  });
  return [
    { key: "name", title: "parameter", width: 200, grows: true, sort: ({ parameter }) => parameter.name, cell: ({ parameter }) => parameter.name, full: ({ parameter }) => parameter.name },
    share("lost", "flushed to 0", "share below 2⁻²⁵, half of fp16's smallest subnormal, at the slider's loss scale; of the values that are not 0"),
    share("imprecise", "subnormal", "share below 2⁻¹⁴ that is not flushed, at the slider's loss scale; of the values that are not 0"),
    share("overflowed", "overflowed", "share of 2¹⁶ and more at the slider's loss scale; of the values that are not 0"),
    { key: "zero", title: "exactly 0", hint: "share of the values looked at, as the run had them", width: 86, numeric: true, sort: ({ totals }) => (totals.elements > 0 ? totals.zero / totals.elements : undefined), cell: ({ totals }) => (totals.elements > 0 ? percent(totals.zero / totals.elements) : "–") },
    { key: "absmax", title: "largest", hint: "largest finite gradient magnitude, unscaled", width: 100, numeric: true, sort: ({ parameter, totals }) => (totals.elements > 0 ? value(parameter.gradient_absmax) : undefined), cell: ({ parameter, totals }) => (totals.elements > 0 ? number(value(parameter.gradient_absmax)) : "–") },
    { key: "nonfinite", title: "non-finite", unit: "steps", hint: "steps in which its gradient held NaN or infinities", width: 130, numeric: true, sort: ({ parameter }) => parameter.nonfinite_steps, cell: ({ parameter }) => count(parameter.nonfinite_steps) },
    { key: "dtype", title: "dtype", width: 58, sort: ({ parameter }) => parameter.dtype, cell: ({ parameter }) => parameter.dtype },
    { key: "shape", title: "shape", width: 108, sort: ({ parameter }) => parameter.shape.length, cell: ({ parameter }) => parameter.shape.join(" × ") || "scalar", full: ({ parameter }) => parameter.shape.join(" × ") },
    { key: "count", title: "elements", width: 96, numeric: true, sort: ({ parameter }) => parameter.count, cell: ({ parameter }) => count(parameter.count) },
    { key: "optimizer", title: "optimizer", width: 84, sort: ({ parameter }) => parameter.optimizer ?? undefined, cell: ({ parameter }) => parameter.optimizer ?? "none", full: ({ parameter }) => parameter.optimizer ?? "no optimizer owns it" },
  ];
}
