// Colours for what is drawn on a canvas. They live in the style sheet; a canvas has to be told when they change.
import { redrawAll } from "./dom";

/** Value of the style sheet's colour `name` as it is now. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const listeners = new Set<() => void>();

/** Calls `redraw` when light and dark change, and around printing, which is always light. */
export function onThemeChange(redraw: () => void): void {
  listeners.add(redraw);
}

function announce(): void {
  for (const listener of listeners) listener();
}

const preparations = new Set<() => void>();

/** Calls `prepare` before everything is unfolded for the printer. */
export function onBeforePrint(prepare: () => void): void {
  preparations.add(prepare);
}

export function watchTheme(): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);
  const unfolded = new Set<HTMLDetailsElement>();
  window.addEventListener("beforeprint", () => {
    for (const prepare of preparations) prepare();
    for (const details of document.querySelectorAll<HTMLDetailsElement>("details:not([open])")) {
      details.open = true;
      unfolded.add(details);
    }
    document.documentElement.classList.add("printing");
    redrawAll();
    announce();
  });
  window.addEventListener("afterprint", () => {
    for (const details of unfolded) details.open = false;
    unfolded.clear();
    document.documentElement.classList.remove("printing");
    redrawAll();
    announce();
  });
}
