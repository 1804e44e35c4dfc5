import "uplot/dist/uPlot.min.css";
import "./style.css";
import { h } from "./dom";
import { embeddedReport, type Report } from "./report";
import { findings } from "./sections/findings";
import { gradients } from "./sections/gradients";
import { countOf, documentTitle, head } from "./sections/head";
import { lossScale } from "./sections/loss_scale";
import { notLookedAt } from "./sections/not_looked_at";
import { opsSection } from "./sections/ops";
import { precisionMap } from "./sections/precision_map";
import { watchTheme } from "./theme";

function navigation(sections: readonly HTMLElement[], report: Report): HTMLElement {
  const bad = countOf(report, "error") + countOf(report, "warning");
  return h(
    "nav",
    { "aria-label": "Parts of this report" },
    h("a", { class: "brand", href: "#top" }, "ampscope"),
    ...sections.map((part) => {
      const title = part.querySelector("h2")?.textContent ?? "";
      return h("a", { href: `#${part.id}` }, part.id === "findings" && bad > 0 ? `${title} (${report.findings.length})` : title);
    }),
  );
}

function footer(report: Report): HTMLElement {
  return h(
    "footer",
    {},
    h("p", {}, `ampscope ${report.tool.version}${report.run.recorded_by ? `, recorded by ${report.run.recorded_by}` : ""}. This page loads nothing from elsewhere.`),
    h("p", {}, "Keys: ", h("kbd", {}, "/"), " searches the ops, ", h("kbd", {}, "Tab"), " goes to the charts and tables, arrow keys move in them."),
  );
}

/** Lets the browser show what is there before more is made. */
function painted(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    // No frame comes while the page is in the background.
    setTimeout(resolve, 100);
  });
}

async function start(page: HTMLElement): Promise<void> {
  const report = embeddedReport();
  document.title = documentTitle(report);
  watchTheme();
  const main = h("main", { id: "top" }, head(report), findings(report));
  page.append(h("a", { class: "skip-link", href: "#findings" }, "Skip to the findings"), main);
  await painted();

  const ops = opsSection(report);
  main.append(lossScale(report), ...gradients(report), precisionMap(report, ops.showModule), ops.element, notLookedAt(report));
  page.insertBefore(navigation([...main.querySelectorAll("section")], report), main);
  page.append(footer(report));
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input[type=search], select, textarea");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    ops.focusSearch();
  });
  // Parts that were not there yet when the page was opened at their anchor.
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  target?.scrollIntoView();
  document.documentElement.dataset.ready = "true";
}

const page = document.getElementById("page");
if (page) {
  start(page).catch((error: unknown) => {
    page.append(h("p", { class: "broken", role: "alert" }, `This report could not be drawn: ${error instanceof Error ? error.message : String(error)}`));
    throw error;
  });
}
