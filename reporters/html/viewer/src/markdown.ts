// A finding as Markdown, to paste into an issue. Names come from the watched program, so each stands in a code span that
// no backtick of its own can end.
import { statusWords } from "./status";
import type { Finding, Report } from "./report";
import { stepRange } from "./format";

export function codeSpan(text: string): string {
  const oneLine = text.replace(/\s+/g, " ");
  const longest = Math.max(0, ...[...oneLine.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  const room = longest > 0 || oneLine.startsWith("`") ? " " : "";
  return `${fence}${room}${oneLine}${room}${fence}`;
}

function codeBlock(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

/** Text outside code spans: characters that Markdown or HTML would act on are escaped. */
function prose(text: string): string {
  return text.replace(/[\\`*_[\]<>#|]/g, (character) => `\\${character}`).replace(/\s+/g, " ");
}

export function markdownOf(finding: Finding, report: Report): string {
  const { culprit, steps, evidence } = finding;
  const places: [string, string | null][] = [
    ["source", culprit.source], ["op", culprit.op], ["module", culprit.module], ["parameter", culprit.parameter], ["phase", culprit.phase],
  ];
  const lines = [
    `### ${finding.rule} ${finding.name}: ${prose(finding.title)}`,
    "",
    `${statusWords[finding.severity]}, ${stepRange(steps.first, steps.last)} (${steps.count} of ${report.run.steps})`,
    "",
    ...places.filter(([, name]) => name).map(([kind, name]) => `- ${kind}: ${codeSpan(name ?? "")}`),
    "",
    prose(finding.message || finding.proof),
    "",
    ...Object.entries(evidence).map(([name, amount]) => `- ${prose(name.replaceAll("_", " "))}: ${typeof amount === "string" ? codeSpan(amount) : String(amount)}`),
  ];
  if (finding.fix) lines.push("", "Fix:", "", codeBlock(finding.fix, ""));
  if (finding.fix_cpp) lines.push("", "Fix in C++:", "", codeBlock(finding.fix_cpp, "cpp"));
  if (finding.symptoms.length > 0) lines.push("", `It explains ${finding.symptoms.join(", ")}.`);
  const setup = [report.run.torch && `torch ${report.run.torch}`, report.run.device, report.run.precision, `ampscope ${report.tool.version}`];
  lines.push("", setup.filter((fact): fact is string => Boolean(fact)).map(prose).join(" · "));
  return `${lines.join("\n").replace(/\n{3,}/g, "\n\n")}\n`;
}

/** Works from a file as well, where some browsers offer no clipboard. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
