// Light, dark, paper, narrow and wide; and what a screen reader needs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { axeSource, close, open } from "./browser.mjs";

const axe = readFileSync(axeSource, "utf8");

function luminance(colour) {
  const [red, green, blue] = colour.match(/[\d.]+/g).map((channel) => {
    const value = Number(channel) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

for (const scheme of ["light", "dark"]) {
  for (const name of ["clipped", "overflow", "bf16", "empty"]) {
    test(`${name} in ${scheme} has no serious accessibility violation`, async () => {
      const page = await open(name, { colorScheme: scheme, bypassCSP: true });
      await page.evaluate(() => {
        for (const details of document.querySelectorAll("details")) details.open = true;
      });
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`), []);
      await close(page);
    });
  }
}

test("dark mode is dark, on the canvases as well, and follows the system while open", async () => {
  const page = await open("healthy", { colorScheme: "light" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const ink = () => page.evaluate(() => getComputedStyle(document.body).color);
  const heat = () => page.locator(".heatmap canvas").evaluate((canvas) => canvas.toDataURL());
  const plot = () => page.locator(".uplot canvas").first().evaluate((canvas) => canvas.toDataURL());
  assert.ok(luminance(await ground()) > 0.9 && luminance(await ink()) < 0.1);
  const light = [await heat(), await plot()];
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForFunction((before) => document.querySelector(".heatmap canvas").toDataURL() !== before, light[0]);
  assert.ok(luminance(await ground()) < 0.05 && luminance(await ink()) > 0.6);
  await page.waitForFunction((before) => document.querySelector(".uplot canvas").toDataURL() !== before, light[1]);
  await close(page);
});

for (const width of [480, 800, 1280, 1600]) {
  test(`nothing sticks out at ${width} px`, async () => {
    for (const name of ["clipped", "overflow", "hostile"]) {
      const page = await open(name, { viewport: { width, height: 900 } });
      await page.evaluate(() => {
        for (const details of document.querySelectorAll("details")) details.open = true;
      });
      const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= window, `${name}: ${content} px of content`);
      await close(page);
    }
  });
}

test("on paper everything is unfolded, light and without controls", async () => {
  const page = await open("clipped", { colorScheme: "dark" });
  await page.evaluate(() => {
    window.printed = undefined;
    // After the page's own listeners, as the printer sees it.
    window.addEventListener("beforeprint", () => {
      window.printed = {
        folded: document.querySelectorAll("details:not([open])").length,
        figures: document.querySelectorAll("#findings figure svg[width]").length,
        findings: document.querySelectorAll("#findings article").length,
      };
    });
  });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const pdf = await page.pdf({ format: "A4", printBackground: false });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  const printed = await page.evaluate(() => window.printed);
  assert.equal(printed.folded, 0);
  assert.equal(printed.figures, printed.findings, "each finding with its picture");
  const visible = (selector) => page.locator(selector).first().evaluate((element) => getComputedStyle(element).display !== "none");
  assert.ok(!(await visible("nav")));
  assert.ok(!(await visible("#loss-scale")));
  assert.equal(await page.locator("#findings details").nth(1).evaluate((details) => details.open), false, "folded again afterwards");
  await close(page);
});

test("the focus goes through the page in reading order and is visible", async () => {
  const page = await open("clipped");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the findings");
  const order = [];
  for (let i = 0; i < 45; i += 1) {
    await page.keyboard.press("Tab");
    order.push(await page.evaluate(() => {
      const { id, className, tagName } = document.activeElement;
      const outline = getComputedStyle(document.activeElement).outlineStyle;
      return { name: id || String(className) || tagName, outline, part: document.activeElement.closest("section")?.id };
    }));
  }
  for (const stop of order) assert.notEqual(stop.outline, "none", `${stop.name} shows the focus`);
  const parts = order.map((stop) => stop.part).filter(Boolean);
  const distinct = parts.filter((part, i) => part !== parts[i - 1]);
  assert.deepEqual(distinct.slice(0, 4), ["findings", "loss-scale-over-steps", "gradients", "parameters"]);
  await close(page);
});
