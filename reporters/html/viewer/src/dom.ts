// Elements are made here and nowhere else. Text only ever becomes a text node or an attribute's value, never markup:
// names in a report come from the program that was watched.

export type Child = Node | string | null | undefined | false;
type Value = string | number | boolean | null | undefined;
type Listener = (event: never) => void;
export type Attributes = Record<string, Value | Listener>;

function fill(element: Element, attributes: Attributes, children: readonly Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value as EventListener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** An HTML element. A function among the attributes listens to the event of that name. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

export function clear(element: Element): void {
  element.replaceChildren();
}

/** Puts `separator` between those of `parts` that are there. */
export function joined(parts: readonly Child[], separator: string): Child[] {
  const present = parts.filter((part) => part !== null && part !== undefined && part !== false && part !== "");
  return present.flatMap((part, i) => (i === 0 ? [part] : [separator, part]));
}

const drawers = new Set<() => void>();

/** Redraws everything that was made with `responsive`, for a change of medium (print) that no observer reports in time. */
export function redrawAll(): void {
  for (const draw of drawers) draw();
}

/**
 * Keeps `element` drawn for its width: `draw` is called with it in CSS pixels once it has one and whenever it changes.
 * Until an element becomes visible (a folded finding) nothing is drawn for it.
 */
export function responsive<E extends HTMLElement>(element: E, draw: (width: number) => void): E {
  let drawn = 0;
  const update = (force: boolean) => {
    const width = Math.floor(element.clientWidth);
    if (width > 0 && (force || width !== drawn)) {
      drawn = width;
      draw(width);
    }
  };
  new ResizeObserver(() => update(false)).observe(element);
  drawers.add(() => update(true));
  return element;
}
