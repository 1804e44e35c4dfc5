// What is wrong, where, how we know, what to type. Each with its picture.
import { h, joined, type Child } from "../dom";
import { count, number, stepRange } from "../format";
import { copyText, markdownOf } from "../markdown";
import { pictureOf } from "../pictures";
import { numeric, type Culprit, type Finding, type Report } from "../report";
import { statusShape, statusWords } from "../status";
import { onBeforePrint } from "../theme";
import { section } from "./section";

function where(culprit: Culprit): Child {
  const named = (kind: string, name: string | null) => (name ? h("span", { class: "name" }, h("span", { class: "kind" }, `${kind} `), name) : null);
  const parts = joined(
    [
      culprit.source && h("span", { class: "name path" }, culprit.source),
      culprit.function && named("in", `${culprit.function}()`),
      named("op", culprit.op),
      named("module", culprit.module),
      named("parameter", culprit.parameter),
      named("phase", culprit.phase),
    ],
    " · ",
  );
  return parts.length > 0 ? h("span", {}, ...parts) : "no single place";
}

function evidence(finding: Finding): Child {
  const entries = Object.entries(finding.evidence);
  if (entries.length === 0) return null;
  return h(
    "dl",
    { class: "evidence" },
    ...entries.map(([name, amount]) => {
      const figure = numeric(amount);
      return h("div", {}, h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, figure === undefined ? String(amount) : number(figure)));
    }),
  );
}

function fix(finding: Finding): Child {
  const block = (text: string) => h("pre", { class: "fix" }, text);
  return h("div", {}, block(finding.fix), finding.fix_cpp ? h("p", { class: "kind" }, "with LibTorch") : null, finding.fix_cpp ? block(finding.fix_cpp) : null);
}

function explained(finding: Finding): Child {
  if (finding.explained.length === 0) {
    return finding.symptoms.length > 0 ? h("p", {}, finding.symptoms.join(", ")) : null;
  }
  return h(
    "ul",
    { class: "explained" },
    ...finding.explained.map((symptom) =>
      h("li", {}, statusShape(symptom.severity, 12), h("span", {}, ` ${statusWords[symptom.severity]} ${symptom.rule} ${symptom.title}, ${stepRange(symptom.steps.first, symptom.steps.last)}. ${symptom.message}`)),
    ),
  );
}

/** "steps 0–411"; with how many of them where it is not all. */
function when({ steps }: Finding): string {
  const range = stepRange(steps.first, steps.last);
  return steps.count < steps.last - steps.first + 1 ? `${count(steps.count)} of ${range}` : range;
}

function article(finding: Finding, id: string, report: Report, open: boolean): HTMLElement {
  const told = h("span", { class: "told", role: "status" });
  const copy = h("button", {
    type: "button",
    click: async () => {
      told.textContent = (await copyText(markdownOf(finding, report))) ? "copied" : "could not reach the clipboard";
    },
  }, "Copy as Markdown");
  const parts: [string, Child][] = [
    ["Where", where(finding.culprit)],
    ["How we know", h("div", {}, h("p", {}, finding.message || finding.proof), evidence(finding))],
    ["Fix", fix(finding)],
    ["Explains", explained(finding)],
    ["Note", finding.same_in_fp32 ? "Not a matter of precision: the same happens in fp32." : null],
  ];
  const text = h("dl", { class: "parts" }, ...parts.flatMap(([name, part]) => (part ? [h("dt", {}, name), h("dd", {}, part)] : [])));
  const details = h(
    "details",
    { open },
    h(
      "summary",
      {},
      h(
        "h3",
        {},
        statusShape(finding.severity),
        h("span", { class: `word word-${finding.severity}` }, statusWords[finding.severity]),
        h("span", { class: "title" }, finding.title),
        h("span", { class: "code" }, `${finding.rule} ${finding.name}`),
        h("span", { class: "when" }, when(finding)),
      ),
    ),
  );
  const body = h("div", { class: "finding" }, h("div", {}, text, h("p", { class: "tools" }, copy, h("a", { href: `#${id}` }, "Link to this finding"), told)));
  details.append(body);
  // The picture is drawn when its finding is first unfolded.
  const paint = () => {
    if (body.childElementCount > 1) return;
    const picture = pictureOf(finding, report);
    if (picture) {
      body.append(
        h("figure", {}, h("figcaption", {}, picture.says), picture.drawing, picture.legend ? h("p", { class: "legend" }, picture.legend) : null),
      );
    }
  };
  if (open) paint();
  details.addEventListener("toggle", () => {
    if (details.open) paint();
  });
  onBeforePrint(paint);
  return h("article", { id, class: `severity-${finding.severity}` }, details);
}

/** "AMP202-1": the rule and how many findings of it came before. */
export function findingIds(findings: readonly Finding[]): string[] {
  const seen = new Map<string, number>();
  return findings.map(({ rule }) => {
    const nth = (seen.get(rule) ?? 0) + 1;
    seen.set(rule, nth);
    return `${rule}-${nth}`;
  });
}

export function findings(report: Report): HTMLElement {
  const ids = findingIds(report.findings);
  const nothing =
    report.run.steps === 0
      ? "No training step was seen. A step ends with an optimizer step; a program that updates its parameters by hand can mark its steps itself."
      : "Nothing was found. What was not looked at stands at the end of this page.";
  const articles = report.findings.map((finding, i) => article(finding, ids[i] ?? "", report, i === 0));
  const reveal = () => {
    const target = articles.find((candidate) => location.hash === `#${candidate.id}`);
    const details = target?.querySelector("details");
    if (!target || !details) return;
    details.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  queueMicrotask(reveal);
  return section("findings", "Findings", undefined, ...(articles.length > 0 ? articles : [h("p", { class: "empty" }, nothing)]));
}
