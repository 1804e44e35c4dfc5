// Findings: what is wrong, where, how we know, what to type; each with a picture that shows it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, open, reportOf } from "./browser.mjs";

test("a finding has its four parts in words", async () => {
  const page = await open("clipped");
  const { findings } = await reportOf(page);
  const articles = page.locator("#findings article");
  assert.equal(await articles.count(), findings.length);
  const first = articles.first();
  assert.ok(await first.locator("details").evaluate((details) => details.open), "the first is open");
  assert.ok(!(await articles.nth(1).locator("details").evaluate((details) => details.open)), "the rest is folded");
  const text = await first.innerText();
  const [finding] = findings;
  for (const words of ["error", finding.rule, finding.name, finding.title, finding.culprit.source, finding.culprit.op, finding.message, ...finding.fix.split("\n"), finding.fix_cpp, "steps 0–411"]) {
    assert.ok(text.includes(words), words);
  }
  assert.deepEqual(await first.locator(".parts > dt").allTextContents(), ["Where", "How we know", "Fix"]);
  await close(page);
});

test("severities differ in word and shape, not in colour alone", async () => {
  const page = await open("clipped");
  const words = await page.locator("#findings h3 .word").allTextContents();
  assert.deepEqual(words, ["error", "warning", "note"]);
  const shapes = await page.locator("#findings h3 > svg").evaluateAll((all) => all.map((shape) => shape.innerHTML));
  assert.equal(new Set(shapes).size, 3);
  await close(page);
});

test("the clip's picture draws the norms on a logarithmic axis and the limit between them", async () => {
  const page = await open("clipped");
  const { findings } = await reportOf(page);
  const { norm_seen: seen, true_norm: real, max_norm: limit, effective_max_norm: acts } = findings[0].evidence;
  const picture = page.locator("#findings article").first().locator("figure");
  const drawn = await picture.locator("rect.bar").evaluateAll((bars) => bars.map((bar) => ({ x: bar.x.baseVal.value, end: bar.x.baseVal.value + bar.width.baseVal.value })));
  assert.equal(drawn.length, 3);
  const line = await picture.locator("path.limit").evaluate((path) => path.getBBox().x);
  // Any two points fix the axis; the third bar and the limit must lie where the logarithm says.
  const perDecade = (drawn[0].end - drawn[2].end) / Math.log10(seen / acts);
  const at = (amount) => drawn[0].end - perDecade * Math.log10(seen / amount);
  assert.ok(Math.abs(drawn[1].end - at(real)) < 1, "true norm");
  assert.ok(Math.abs(line - at(limit)) < 1, "max_norm");
  assert.match(await picture.locator("figcaption").innerText(), /48\u202f211.*0\.736/);
  await close(page);
});

test("the chain shows the ops in order, victims folded until asked for", async () => {
  const page = await open("overflow");
  const { findings } = await reportOf(page);
  const { chain } = findings[0];
  const picture = page.locator("#findings figure").first();
  const stops = () => picture.locator("svg text.bar-label title").allTextContents();
  const victims = chain.filter((link) => link.note === "passes on").length;
  assert.equal((await stops()).length, chain.length - victims + 1);
  await picture.getByRole("button", { name: `Show all ${chain.length} ops` }).click();
  assert.deepEqual(await stops(), chain.map((link) => link.op));
  const caption = await picture.locator("figcaption").innerText();
  assert.match(caption, /aten::matmul in layers\.3\.attention makes 12 non-finite values from inputs of at most 312; fp16 ends at 65\u202f504, in higher precision the result reaches 71\u202f203/);
  // What was computed in higher precision lies above fp16's limit.
  const limit = await picture.locator("path.limit").first().evaluate((path) => path.getBBox().y);
  const computed = await picture.locator("circle.value-computed").evaluate((circle) => circle.cy.baseVal.value);
  assert.ok(computed < limit, "above the limit");
  await close(page);
});

test("symptoms stand under their cause", async () => {
  const page = await open("overflow");
  const text = await page.locator("#findings article").first().innerText();
  assert.match(text, /Explains\s+warning AMP302 the loss scale falls faster than it can grow/);
  assert.equal(await page.locator("#findings article").count(), 1);
  await close(page);
});

test("the flushed part of the histogram has the height that the finding claims", async () => {
  const page = await open("underflow");
  const { findings, parameters } = await reportOf(page);
  const picture = page.locator("#findings figure").first();
  const height = (selector) => picture.locator(selector).first().evaluate((bar) => bar.height.baseVal.value);
  let zero = 0;
  let all = 0;
  for (const { gradients } of parameters) {
    for (const window of gradients) {
      zero += window.zero;
      all += window.zero + window.exponents.counts.reduce((sum, count) => sum + count, 0);
    }
  }
  const flushed = await height("rect.bar-flushed");
  const kept = await height("rect.zeros-kept");
  assert.ok(Math.abs(flushed / (flushed + kept) - (findings[0].evidence.share_flushed * all) / zero) < 0.01);
  await close(page);
});

test("an anchor opens its finding, also when it changes", async () => {
  const page = await open("clipped", { hash: "#AMP212-1" });
  const isOpen = (id) => page.locator(`[id="${id}"] details`).evaluate((details) => details.open);
  assert.ok(await isOpen("AMP212-1"));
  await page.evaluate(() => { location.hash = "#AMP301-1"; });
  await page.waitForFunction(() => document.querySelector('[id="AMP301-1"] details').open);
  await close(page);
});

test("copy as Markdown gives all parts, with names that cannot break out", async () => {
  for (const name of ["clipped", "hostile"]) {
    const page = await open(name, { permissions: ["clipboard-read", "clipboard-write"] });
    const { findings } = await reportOf(page);
    const article = page.locator("#findings article").first();
    await article.getByRole("button", { name: "Copy as Markdown" }).click();
    await article.getByText("copied", { exact: true }).waitFor();
    const markdown = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(markdown, /^### AMP202 clip-before-unscale: /);
    if (name === "clipped") {
      for (const words of [`\`${findings[0].culprit.source}\``, findings[0].fix, "norm seen: 48211", "torch 2.13.0"]) {
        assert.ok(markdown.includes(words), words);
      }
    } else {
      const outside = markdown.replace(/(`{3,})[\s\S]*?\n\1/g, "").replace(/(`+)[^`][\s\S]*?\1/g, "");
      assert.doesNotMatch(outside, /(^|[^\\])</, "no tag outside a code span");
    }
    await close(page);
  }
});
