// Every op site of the run.
import { h } from "../dom";
import { bytes, count, counted, duration, number, percent } from "../format";
import { headroomOf, inside, isCast } from "../modules";
import { value, type Nonfinite, type Op, type Report } from "../report";
import { Search } from "../search";
import { VirtualTable, type Column } from "../table";
import { flightRecord } from "./flight_record";
import { section } from "./section";

function dtypes(op: Op): string {
  const before = op.dtype_before ?? op.dtype_out ?? "–";
  const after = op.dtype_after ?? before;
  const computed = before === after ? before : `${before} → ${after}`;
  return op.dtype_out && op.dtype_out !== after ? `${computed} → ${op.dtype_out}` : computed;
}

/** "model.py:57" of "lib/net/model.py:57". */
function fileName(source: string | null): string {
  return source === null ? "" : source.slice(source.lastIndexOf("/") + 1);
}

const columns: Column<Op>[] = [
  { key: "op", title: "op", width: 160, grows: true, sort: (op) => op.op, cell: (op) => op.op, full: (op) => op.op },
  { key: "phase", title: "phase", width: 76, sort: (op) => op.phase, cell: (op) => op.phase },
  {
    key: "module", title: "module", width: 170, grows: true, sort: (op) => op.module, full: (op) => `${op.module} ${op.module_class}`,
    cell: (op) => h("span", {}, op.module, op.module_class ? h("span", { class: "kind" }, ` ${op.module_class}`) : null),
  },
  { key: "source", title: "source", width: 120, sort: (op) => op.source ?? undefined, cell: (op) => fileName(op.source), full: (op) => op.source ?? "source line not known" },
  {
    key: "dtype", title: "dtype", hint: "as passed → as computed, after autocast → of the result where that differs", width: 116, sort: dtypes, full: dtypes,
    cell: (op) => h("span", { class: isCast(op) ? "cast" : null }, dtypes(op)),
  },
  { key: "calls", title: "calls", width: 76, numeric: true, sort: (op) => op.calls, cell: (op) => count(op.calls) },
  { key: "bytes", title: "bytes", hint: "size of its results, all calls", width: 80, numeric: true, sort: (op) => op.bytes, cell: (op) => bytes(op.bytes) },
  { key: "time", title: "time", hint: "inside it, all calls, estimated from those timed", width: 80, numeric: true, sort: (op) => op.time_ns, cell: (op) => (op.time_ns > 0 ? duration(op.time_ns) : "–") },
  { key: "absmax", title: "largest", hint: "largest finite magnitude of its results", width: 86, numeric: true, sort: (op) => value(op.absmax), cell: (op) => (value(op.absmax) === 0 ? "–" : number(value(op.absmax))) },
  {
    key: "headroom", title: "headroom", unit: "2ⁿ", hint: "powers of two from the largest magnitude to the type's largest finite value", width: 110, numeric: true,
    sort: (op) => headroomOf(op), cell: (op) => number(Number((headroomOf(op) ?? NaN).toFixed(1))).replace("NaN", "–"),
  },
  {
    key: "nonfinite", title: "non-finite", hint: "first step with a NaN or an infinity in its results", width: 140, numeric: true, sort: (op) => op.first_nonfinite_step ?? undefined,
    cell: (op) => (op.first_nonfinite_step === null ? "" : h("span", { class: "word-error" }, `step ${count(op.first_nonfinite_step)} (${counted(op.nonfinite_calls, "call")})`)),
  },
];

/** Of runs at the level shadow: what the type an op ran in cost it. */
const roundingColumns: Column<Op>[] = [
  {
    key: "rounding", title: "error", hint: "distance of its results from the same calls in higher precision on the same inputs, relative to their norm", width: 84, numeric: true,
    sort: (op) => (op.rounding ? value(op.rounding.relative_error) : undefined),
    cell: (op) => (op.rounding ? percent(value(op.rounding.relative_error)) : ""),
    full: (op) => (op.rounding ? `${op.rounding.dtype ?? ""} against ${op.rounding.reference ?? ""}: ${count(op.rounding.elements)} elements in ${counted(op.rounding.steps, "step")}, ${percent(value(op.rounding.above_one_ulp_share))} of them off by more than one ulp` : "not compared"),
  },
  {
    key: "ulp", title: "ulp", hint: "mean and largest distance in units of the spacing of the type's values there", width: 110, numeric: true,
    sort: (op) => (op.rounding ? value(op.rounding.max_ulp) : undefined),
    cell: (op) => (op.rounding ? `${number(Number(value(op.rounding.mean_ulp).toPrecision(2)))} / ${number(Number(value(op.rounding.max_ulp).toPrecision(2)))}` : ""),
    full: (op) => (op.rounding ? `furthest off: ${number(value(op.rounding.worst_value))} for ${number(value(op.rounding.worst_reference))}` : "not compared"),
  },
];

export interface OpsSection {
  element: HTMLElement;
  /** Shows only the ops of this module and, unless `own`, of those inside it. */
  showModule(path: string, own: boolean): void;
  focusSearch(): void;
}

function sentence(report: Report): string {
  const { ops } = report;
  const heaviest = ops.reduce<Op | undefined>((most, op) => (most === undefined || op.time_ns > most.time_ns ? op : most), undefined);
  const cast = ops.filter(isCast).length;
  const bad = ops.filter((op) => op.first_nonfinite_step !== null).length;
  const total = ops.reduce((sum, op) => sum + op.time_ns, 0);
  const slowest = heaviest && heaviest.time_ns > 0 ? `; most time goes to ${heaviest.op}${heaviest.module ? ` in ${heaviest.module}` : ""} (${percent(heaviest.time_ns / total)})` : "";
  return `${counted(ops.length, "op")}, ${count(cast)} of them with a cast, ${bad === 0 ? "none" : count(bad)} with a non-finite result${slowest}.`;
}

const kinds: Record<string, string> = {
  producer: "made from finite inputs",
  propagator: "an input was non-finite already",
  input: "came in from outside",
  unknown: "inputs not seen",
};

/** Where values became non-finite, in the order in which it happened. */
function nonfiniteValues(report: Report): HTMLElement | null {
  const rows = report.nonfinite;
  if (rows.length === 0) return null;
  const table = new VirtualTable<Nonfinite>({
    id: "nonfinite-table",
    caption: "Non-finite values in the order in which they appeared",
    rows,
    sortedBy: "order",
    descending: false,
    empty: "",
    columns: [
      { key: "order", title: "order", width: 80, numeric: true, sort: (row) => row.order, cell: (row) => count(row.order) },
      { key: "step", title: "step", width: 80, numeric: true, sort: (row) => row.step, cell: (row) => count(row.step) },
      { key: "kind", title: "how", width: 210, sort: (row) => row.kind, cell: (row) => kinds[row.kind] ?? row.kind },
      { key: "op", title: "op", width: 160, grows: true, sort: (row) => row.op, cell: (row) => row.op, full: (row) => row.op },
      { key: "phase", title: "phase", width: 80, sort: (row) => row.phase, cell: (row) => row.phase },
      { key: "module", title: "module", width: 190, grows: true, sort: (row) => row.module, cell: (row) => row.module, full: (row) => row.module },
      { key: "source", title: "source", width: 140, sort: (row) => row.source ?? undefined, cell: (row) => fileName(row.source), full: (row) => row.source ?? "" },
      { key: "dtype", title: "dtype", width: 64, sort: (row) => row.dtype, cell: (row) => row.dtype },
      { key: "nan", title: "NaN", width: 90, numeric: true, sort: (row) => row.nan, cell: (row) => count(row.nan) },
      { key: "infinite", title: "infinite", width: 90, numeric: true, sort: (row) => row.infinite, cell: (row) => count(row.infinite) },
      { key: "elements", title: "of elements", width: 112, numeric: true, sort: (row) => row.elements, cell: (row) => count(row.elements) },
    ],
  });
  return h("details", { class: "more" }, h("summary", {}, `Non-finite values in the order in which they appeared (${count(rows.length)})`), table.element);
}

function flightRecords(report: Report): HTMLElement[] {
  const ops = new Map(report.ops.map((op) => [op.site, op]));
  return report.flight_records.filter((record) => record.calls.length > 0).map((record, i) => flightRecord(record, ops, i));
}

export function opsSection(report: Report): OpsSection {
  if (report.ops.length === 0) {
    const element = section("ops", "Ops", undefined, h("p", { class: "empty" }, "No op was seen."));
    return { element, showModule: () => undefined, focusSearch: () => undefined };
  }
  let module: { path: string; own: boolean } | undefined;
  const names = [...new Set(report.ops.map((op) => op.dtype_after ?? op.dtype_out ?? ""))].filter(Boolean).sort();
  const only = h("select", { id: "op-kind", change: () => apply() },
    h("option", { value: "" }, "all ops"),
    ...names.map((name) => h("option", { value: `dtype ${name}` }, `computed in ${name}`)),
    h("option", { value: "cast" }, "with a cast"),
    h("option", { value: "nonfinite" }, "with a non-finite result"));
  const search = new Search<Op>("op-search", "Search ops", (op) => `${op.op} ${op.phase} ${op.module} ${op.module_class} ${op.source ?? ""} ${dtypes(op)}`, () => apply());
  const moduleName = h("span", {});
  const moduleFilter = h("button", { type: "button", class: "chip", hidden: true, title: "Show the ops of all modules", click: () => {
    filterBy(undefined);
    search.input.focus();
  } }, moduleName, h("span", { "aria-hidden": "true" }, " ×"), h("span", { class: "unseen" }, ", show all modules"));
  const table = new VirtualTable<Op>({
    id: "op-table", caption: "Ops", rows: report.ops, sortedBy: "time", descending: true, empty: "No op matches.",
    columns: report.ops.some((op) => op.rounding) ? [...columns.slice(0, 5), ...roundingColumns, ...columns.slice(5)] : columns,
  });
  const apply = () => {
    const kind = only.value;
    const rows = report.ops.filter((op) => {
      if (module && !inside(op, module.path, module.own)) return false;
      if (kind === "cast") return isCast(op);
      if (kind === "nonfinite") return op.first_nonfinite_step !== null;
      return kind === "" || `dtype ${op.dtype_after ?? op.dtype_out ?? ""}` === kind;
    });
    const found = search.filter(rows);
    search.tell(found.length, report.ops.length);
    table.setRows(found);
  };
  const filterBy = (wanted: typeof module) => {
    module = wanted;
    moduleFilter.hidden = module === undefined;
    moduleName.textContent = module?.own ? "outside of modules" : `module ${module?.path ?? ""}`;
    apply();
  };
  const showModule = (path: string, own: boolean) => {
    filterBy(path === "" && !own ? undefined : { path, own });
    element.scrollIntoView();
  };
  const element = section(
    "ops",
    "Ops",
    sentence(report),
    h("p", { class: "filters" }, search.element, h("label", {}, "show ", only), moduleFilter),
    table.element,
    nonfiniteValues(report),
    ...flightRecords(report),
  );
  return { element, showModule, focusSearch: () => {
    element.scrollIntoView();
    search.input.focus({ preventScroll: true });
    search.input.select();
  } };
}
