// The ops of forward and backward as a tree of modules: how much of each one's work ran in which type.
import { value, type Op } from "./report";

export type Kind = "fp16" | "bf16" | "fp32" | "other";
export const kinds: readonly Kind[] = ["fp16", "bf16", "fp32", "other"];

export interface Work {
  fp16: number;
  bf16: number;
  fp32: number;
  other: number;
  total: number;
  /** Calls of ops that convert a tensor, and of those that autocast converted the input of, each conversion once. */
  casts: number;
  /** The op that came nearest to the largest finite value of its type. */
  nearest: Op | undefined;
  ops: number;
  nonfinite: number;
}

export interface ModuleNode {
  name: string;
  path: string;
  /** Stands for the ops at `path` itself, not for those of modules inside it. */
  own: boolean;
  moduleClass: string;
  depth: number;
  work: Work;
  parent: ModuleNode | undefined;
  children: ModuleNode[];
}

export type Measure = "time" | "elements";

const elementBytes: Record<string, number> = { fp16: 2, bf16: 2, fp32: 4, fp64: 8, int64: 8, int32: 4, int16: 2, int8: 1, uint8: 1, bool: 1 };

/** Rows by the row that called them. */
function calledBy(ops: readonly Op[]): Map<number, Op[]> {
  const inner = new Map<number, Op[]>();
  for (const op of ops) {
    if (op.parent === null) continue;
    const siblings = inner.get(op.parent);
    if (siblings) siblings.push(op);
    else inner.set(op.parent, [op]);
  }
  return inner;
}

/**
 * What counts as an op's own work: the time in it but not in the ops it calls; or the elements it makes, unless they are
 * its caller's result as well.
 */
function ownWork(op: Op, inner: readonly Op[], measure: Measure): number {
  if (measure === "time") return Math.max(0, op.time_ns - inner.reduce((sum, called) => sum + called.time_ns, 0));
  return op.parent === null ? op.bytes / (elementBytes[op.dtype_out ?? ""] ?? 4) : 0;
}

function kindOf(op: Op): Kind {
  const dtype = op.dtype_after ?? op.dtype_out;
  return dtype === "fp16" || dtype === "bf16" || dtype === "fp32" ? dtype : "other";
}

/** Whether it converts a tensor, or autocast converted what was passed to it. */
export function isCast(op: Op): boolean {
  const converts = /(^|::)(_to_copy|to|type_as)$/.test(op.op);
  const made = converts ? op.dtype_out : op.dtype_after;
  return (converts || op.autocast) && op.dtype_before !== null && made !== null && op.dtype_before !== made;
}

export function headroomOf(op: Op | undefined): number | undefined {
  return op?.headroom === null || op?.headroom === undefined ? undefined : value(op.headroom);
}

function noWork(): Work {
  return { fp16: 0, bf16: 0, fp32: 0, other: 0, total: 0, casts: 0, nearest: undefined, ops: 0, nonfinite: 0 };
}

function add(work: Work, op: Op, share: number, casts: number): void {
  work[kindOf(op)] += share;
  work.total += share;
  work.ops += 1;
  work.nonfinite += op.nonfinite_calls;
  work.casts += casts;
  const headroom = headroomOf(op);
  const least = headroomOf(work.nearest);
  if (headroom !== undefined && (least === undefined || headroom < least)) work.nearest = op;
}

export function inMap(op: Op): boolean {
  return op.phase === "forward" || op.phase === "backward";
}

/** Whether `op` belongs to the module at `path` or to one inside it; with `own`, to that module itself. */
export function inside(op: Op, path: string, own: boolean): boolean {
  if (own) return op.module === path;
  return path === "" || op.module === path || op.module.startsWith(`${path}.`);
}

/** The root stands for the whole program; its last child for what no module is known of. */
export function moduleTree(ops: readonly Op[], measure: Measure): ModuleNode {
  const root: ModuleNode = { name: "whole program", path: "", own: false, moduleClass: "", depth: 0, work: noWork(), parent: undefined, children: [] };
  const nodes = new Map<string, ModuleNode>([["", root]]);
  const nodeAt = (path: string): ModuleNode => {
    const known = nodes.get(path);
    if (known) return known;
    const dot = path.lastIndexOf(".");
    const parent = nodeAt(dot < 0 ? "" : path.slice(0, dot));
    const node: ModuleNode = { name: path.slice(dot + 1), path, own: false, moduleClass: "", depth: parent.depth + 1, work: noWork(), parent, children: [] };
    parent.children.push(node);
    nodes.set(path, node);
    return node;
  };
  const inner = calledBy(ops);
  const outside: ModuleNode = { ...root, name: "outside of modules", own: true, depth: 1, work: noWork(), parent: root, children: [] };
  for (const op of ops) {
    if (!inMap(op)) continue;
    const called = inner.get(op.site) ?? [];
    const share = ownWork(op, called, measure);
    const casts = isCast(op) && !called.some(isCast) ? op.calls : 0;
    const node = op.module === "" ? outside : nodeAt(op.module);
    if (op.module_class && op.module !== "") node.moduleClass = op.module_class;
    for (let at: ModuleNode | undefined = node; at; at = at.parent) add(at.work, op, share, casts);
  }
  if (outside.work.ops > 0 && root.children.length > 0) root.children.push(outside);
  return root;
}
