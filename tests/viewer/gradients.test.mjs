// The slider "at loss scale 2^k" against numbers computed here from the histograms alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertShare, close, open, reportOf } from "./browser.mjs";

// fp16: the smallest subnormal is 2^-24, so what is below 2^-25 rounds to zero; normal from 2^-14; 2^16 is out of range.
function expected(parameters, scaleLog2) {
  let lost = 0;
  let imprecise = 0;
  let overflowed = 0;
  let all = 0;
  for (const { gradients } of parameters) {
    for (const { exponents } of gradients) {
      exponents.counts.forEach((count, i) => {
        const scaled = exponents.first + i + scaleLog2;
        all += count;
        if (scaled < -25) lost += count;
        else if (scaled < -14) imprecise += count;
        else if (scaled >= 16) overflowed += count;
      });
    }
  }
  return { lost: lost / all, imprecise: imprecise / all, overflowed: overflowed / all };
}

async function shown(page) {
  const text = (kind) => page.locator(`.share-${kind} strong`).innerText();
  return { lost: await text("lost"), imprecise: await text("imprecise"), overflowed: await text("overflowed") };
}

async function setScale(page, exponent) {
  await page.locator("#loss-scale").fill(String(exponent));
}

for (const name of ["underflow", "clipped"]) {
  test(`${name}: the shares follow the slider`, async () => {
    const page = await open(name);
    const { parameters } = await reportOf(page);
    const seen = new Set();
    for (const exponent of [0, 5, 10, 15, 18, 24]) {
      await setScale(page, exponent);
      const shares = await shown(page);
      const wanted = expected(parameters, exponent);
      for (const kind of ["lost", "imprecise", "overflowed"]) assertShare(shares[kind], wanted[kind], `${kind} at 2^${exponent}`);
      seen.add(JSON.stringify(shares));
    }
    assert.ok(seen.size >= 5, "they change");
    await close(page);
  });
}

test("each parameter's own shares stand in its row and follow the slider", async () => {
  const page = await open("underflow");
  const { parameters } = await reportOf(page);
  for (const exponent of [8, 14]) {
    await setScale(page, exponent);
    const rows = await page.locator("#parameter-table tbody tr:not(.spacer)").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.equal(rows.length, parameters.length);
    let previous = Infinity;
    for (const [name, lost, imprecise, overflowed] of rows) {
      const wanted = expected(parameters.filter((parameter) => parameter.name === name), exponent);
      assertShare(lost, wanted.lost, `${name} lost`);
      assertShare(imprecise, wanted.imprecise, `${name} imprecise`);
      assertShare(overflowed, wanted.overflowed, `${name} overflowed`);
      assert.ok(wanted.lost <= previous, "sorted by what is lost, most first");
      previous = wanted.lost;
    }
  }
  await close(page);
});

test("a chosen parameter has its own heat map, shares and sentence", async () => {
  const page = await open("underflow");
  const { parameters } = await reportOf(page);
  const chosen = parameters[5];
  await setScale(page, 10);
  const before = await page.locator(".heatmap canvas").evaluate((canvas) => canvas.toDataURL());
  await page.getByRole("button", { name: chosen.name, exact: true }).click();
  assert.ok((await page.locator("#gradients .choice").innerText()).includes(chosen.name));
  const wanted = expected([chosen], 10);
  const shares = await shown(page);
  for (const kind of Object.keys(wanted)) assertShare(shares[kind], wanted[kind], kind);
  assert.notEqual(await page.locator(".heatmap canvas").evaluate((canvas) => canvas.toDataURL()), before);
  await page.getByRole("button", { name: "Show all parameters" }).click();
  assert.equal(await page.locator(".heatmap canvas").evaluate((canvas) => canvas.toDataURL()), before);
  await close(page);
});

test("the heat map is darkest where the values are, and its limits move with the slider", async () => {
  const page = await open("healthy");
  const { parameters } = await reportOf(page);
  const totals = new Map();
  for (const { gradients } of parameters) {
    for (const { exponents } of gradients) exponents.counts.forEach((count, i) => totals.set(exponents.first + i, (totals.get(exponents.first + i) ?? 0) + count));
  }
  const heaviest = [...totals].sort((a, b) => b[1] - a[1])[0][0];
  const map = page.locator(".heatmap");
  await map.scrollIntoViewIfNeeded();
  // The darkest pixel of a column in the middle, read out through the page itself.
  const row = await map.locator("canvas").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(canvas.width >> 1, 0, 1, canvas.height);
    let best = 0;
    let light = Infinity;
    for (let y = 0; y < canvas.height; y += 1) {
      const sum = data[y * 4] + data[y * 4 + 1] + data[y * 4 + 2];
      if (data[y * 4 + 3] > 0 && sum < light) [best, light] = [y, sum];
    }
    return (best + 1) / canvas.height;
  });
  const box = await map.locator("canvas").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * row);
  const readout = await page.locator("#gradients .readout").innerText();
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const exponent = Number([...readout.match(/2(⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+) to/)[1]].map((c) => (c === "⁻" ? "-" : digits.indexOf(c))).join(""));
  assert.ok(Math.abs(exponent - heaviest) <= 3, `${exponent} is near ${heaviest}`);

  const line = (name) => map.locator(`[data-limit="${name}"]`).evaluate((path) => path.getBBox().y);
  await setScale(page, 10);
  const [normal, smallest] = [await line("normal"), await line("subnormal")];
  assert.ok(smallest > normal, "the smaller limit lies lower");
  await setScale(page, 12);
  const moved = (await line("normal")) - normal;
  assert.ok(Math.abs(moved - (2 * (smallest - normal)) / 10) < 0.6, `${moved} px for two powers of two`);
  await close(page);
});

test("today's and the recommended scale are marks that can be gone to", async () => {
  const page = await open("clipped");
  const { scaler } = await reportOf(page);
  const words = await page.locator(".what-if-marks").evaluate((svg) => svg.textContent);
  assert.match(words, /today/);
  assert.match(words, /recommended/);
  await page.getByRole("button", { name: /recommended$/ }).click();
  assert.equal(2 ** Number(await page.locator("#loss-scale").inputValue()), scaler.recommendation.init_scale);
  await page.getByRole("button", { name: /at the end of this run$/ }).click();
  assert.equal(2 ** Number(await page.locator("#loss-scale").inputValue()), scaler.timeline.at(-1).scale_after);
  await close(page);
});

test("the slider obeys the arrow keys and says what it stands at", async () => {
  const page = await open("clipped");
  const slider = page.locator("#loss-scale");
  await slider.focus();
  const before = Number(await slider.inputValue());
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowLeft");
  assert.equal(Number(await slider.inputValue()), before + 1);
  assert.equal(await slider.getAttribute("aria-valuetext"), `2 to the power of ${before + 1}`);
  assert.match(await page.locator(".what-if-head label").innerText(), new RegExp(`= ${2 ** (before + 1)}$`));
  await close(page);
});
