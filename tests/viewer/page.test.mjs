// The whole page, on every report: it opens without an error and without a request, and all of its parts are there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, fixtures, open, reportOf } from "./browser.mjs";

const parts = ["Findings", "Loss scale", "Gradients", "Parameters", "Precision map", "Ops", "Not looked at"];

for (const name of fixtures) {
  test(`${name} opens with all parts, without an error and without a request`, async () => {
    const page = await open(name);
    assert.deepEqual(await page.locator("h2").allTextContents(), parts);
    assert.equal(await page.locator("h1").count(), 1);
    const links = await page.locator("nav a").evaluateAll((anchors) => anchors.map((anchor) => anchor.getAttribute("href")));
    for (const link of links) assert.equal(await page.locator(`[id="${link.slice(1)}"]`).count(), 1, link);
    // Wandering over everything brings no error either.
    for (const heading of parts) await page.getByRole("heading", { name: heading, exact: true }).scrollIntoViewIfNeeded();
    await close(page);
  });
}

test("a request is refused by the page's own policy", async () => {
  const page = await open("healthy");
  const refused = await page.evaluate(
    () =>
      new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
        fetch("http://127.0.0.1:9/").catch(() => undefined);
        setTimeout(() => resolve("sent"), 3000);
      }),
  );
  assert.equal(refused, "connect-src");
  const image = await page.evaluate(
    () =>
      new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
        new Image().src = "http://127.0.0.1:9/x.png";
        setTimeout(() => resolve("sent"), 3000);
      }),
  );
  assert.equal(image, "img-src");
  await page.context().close();
});

test("the head answers first: is it healthy, and what is wrong", async () => {
  const verdicts = {
    clipped: /^Not healthy: gradients are clipped while they are still scaled, and 1 more$/,
    underflow: /^Look at this: /,
    healthy: /^Healthy, with 1 note$/,
    bf16: /^Healthy: nothing to report in 412 steps$/,
    empty: /^No training step was seen/,
  };
  for (const [name, words] of Object.entries(verdicts)) {
    const page = await open(name);
    assert.match(await page.locator("h1").innerText(), words);
    assert.equal(await page.locator("h1 svg").count(), 1, "the verdict has a shape beside its colour");
    await close(page);
  }
  const page = await open("clipped");
  const head = await page.locator("header").innerText();
  for (const fact of ["python train.py --amp --epochs 3", "2.13.0+cpu", "fp16 autocast", "412", "9 (2.2 %)", "1.06×"]) {
    assert.ok(head.includes(fact), `${fact} in the head`);
  }
  assert.match(await page.title(), /1 error, 1 warning, 1 note/);
  await close(page);
});

test("the sentence above the loss scale is true to the data", async () => {
  const page = await open("clipped");
  const { scaler, run } = await reportOf(page);
  const skips = scaler.timeline.filter((entry) => entry.skipped);
  const says = (await page.locator("#loss-scale-over-steps .says").innerText()).replaceAll("\u202f", "");
  assert.ok(says.startsWith(`${skips.length} of ${run.steps} steps were skipped, ${skips.filter((skip) => skip.by_design).length} of them by design`), says);
  assert.ok(says.includes(`fell from ${scaler.timeline[0].scale}`) && says.includes(`to ${scaler.timeline.at(-1).scale_after}`), says);
  await close(page);
});

test("what is missing is said, not drawn", async () => {
  let page = await open("bf16");
  assert.match(await page.locator("#loss-scale-over-steps").innerText(), /No loss scaler was used in this run\./);
  assert.match(await page.locator("#gradients").innerText(), /No gradient was looked at/);
  const unseen = await page.locator("#not-looked-at").innerText();
  for (const words of ["AMP501", "gradient statistics (--level grads or higher)", "torch.compile forward of Net", "8.3 %", "204 events were dropped"]) {
    assert.ok(unseen.includes(words), words);
  }
  await close(page);
  page = await open("empty");
  const text = await page.locator("main").innerText();
  for (const words of ["no space left on device", "could not be read", "No op was seen.", "No parameter was seen.", "No loss scaler"]) {
    assert.ok(text.includes(words), words);
  }
  await close(page);
});

test("a step that is pointed at is read out, by mouse and by keys", async () => {
  const page = await open("clipped");
  const plots = page.locator(".plots");
  const readout = page.locator(".timeline .readout");
  const { scaler } = await reportOf(page);
  const first = scaler.timeline.find((entry) => entry.skipped);
  await plots.focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await readout.innerText(), /^step 0 · loss scale 65\u202f536 \(2¹⁶\) → 32\u202f768 \(2¹⁵\) · skipped, by design · overflowed: /);
  for (const name of first.parameters) assert.ok((await readout.innerText()).includes(name));
  await page.keyboard.press("ArrowRight");
  assert.match(await readout.innerText(), /^step 1 /);
  const box = await plots.boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60);
  const step = Number((await readout.innerText()).match(/^step (\d+)/)[1]);
  assert.ok(step > 150 && step < 330, `step ${step} in the middle of the chart`);
  await close(page);
});

test("dragging zooms all charts of the stack and Escape shows the whole run again", async () => {
  const page = await open("clipped");
  const plots = page.locator(".plots");
  await plots.scrollIntoViewIfNeeded();
  const box = await plots.boundingBox();
  const stepAt = async (part) => {
    await page.mouse.move(box.x + 68 + (box.width - 84) * part, box.y + 60);
    return Number((await page.locator(".timeline .readout").innerText()).match(/^step (\d+)/)[1]);
  };
  const before = [await stepAt(0.02), await stepAt(0.98)];
  await page.mouse.move(box.x + 68 + (box.width - 84) * 0.4, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 68 + (box.width - 84) * 0.6, box.y + 60, { steps: 8 });
  await page.mouse.up();
  const zoomed = [await stepAt(0.02), await stepAt(0.98)];
  assert.ok(zoomed[0] > 412 * 0.35 && zoomed[1] < 412 * 0.65, `${zoomed} after the zoom`);
  await plots.focus();
  await page.keyboard.press("Escape");
  assert.deepEqual([await stepAt(0.02), await stepAt(0.98)], before);
  await close(page);
});
