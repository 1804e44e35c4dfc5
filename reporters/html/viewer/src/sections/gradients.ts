// Gradient magnitudes over the steps, and what fp16 would keep of them at another loss scale.
import { h } from "../dom";
import { HeatMap } from "../charts/heatmap";
import { WhatIf } from "../charts/whatif";
import { gradientMap, scaleMarks, totalsOf } from "../gradients";
import type { Parameter, Report } from "../report";
import { gradientSentence } from "../sentences";
import { ParameterTable } from "./parameters";
import { section } from "./section";

export function gradients(report: Report): HTMLElement[] {
  const watched = report.parameters.filter((parameter) => parameter.gradients.length > 0);
  const marks = scaleMarks(report);
  const table = new ParameterTable(report, (parameter) => choose(parameter));
  const map = gradientMap(watched);
  if (!map) {
    const why =
      report.parameters.length === 0
        ? "No parameter was seen."
        : watched.length === 0
          ? 'No gradient was looked at (level "ops" does not).'
          : "Every gradient value that was looked at is 0 or non-finite.";
    return [section("gradients", "Gradients", undefined, h("p", { class: "empty" }, why)), table.section()];
  }
  const sentence = h("p", { class: "says" });
  const chosen = h("strong", {}, "all parameters");
  const back = h("button", { type: "button", hidden: true, click: () => choose(undefined) }, "Show all parameters");
  const all = totalsOf(watched);
  const heat = new HeatMap(map, "Gradient magnitudes over the steps", marks.today ?? 0);
  const slider = new WhatIf(all.exponents, marks, (scaleLog2) => {
    heat.setScale(scaleLog2);
    table.setScale(scaleLog2);
  });
  const say = (parameter: Parameter | undefined) => {
    const totals = parameter ? totalsOf([parameter]) : all;
    sentence.textContent = gradientSentence(totals, marks, parameter ? `of ${parameter.name}` : "of all parameters");
    return totals;
  };
  const choose = (parameter: Parameter | undefined) => {
    const ownMap = parameter ? gradientMap([parameter]) : map;
    table.setChosen(parameter);
    chosen.textContent = parameter ? parameter.name : "all parameters";
    back.hidden = parameter === undefined;
    slider.setExponents(say(parameter).exponents);
    if (ownMap) heat.setMap(ownMap);
  };
  say(undefined);
  heat.setScale(slider.scaleLog2);
  table.setScale(slider.scaleLog2);
  return [
    section(
      "gradients",
      "Gradients",
      undefined,
      sentence,
      h("p", { class: "choice" }, "Showing ", chosen, " ", back),
      heat.element,
      slider.element,
    ),
    table.section(),
  ];
}
