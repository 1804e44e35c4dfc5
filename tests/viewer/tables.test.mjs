// Tables and the module tree: search, order, filters, keys, and ten thousand rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertShare, close, open, reportOf } from "./browser.mjs";

const rowsOf = (page, id) =>
  page.locator(`#${id} tbody tr:not(.spacer)`).evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

test("/ goes to the search, which keeps the ops that hold every word", async () => {
  const page = await open("overflow");
  const { ops } = await reportOf(page);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "op-search");
  await page.keyboard.type("LINEAR layers.2");
  const wanted = ops.filter((op) => JSON.stringify(op).toLowerCase().includes("linear") && op.module.startsWith("layers.2."));
  const rows = await rowsOf(page, "op-table");
  assert.ok(wanted.length > 0 && wanted.length < ops.length);
  assert.equal(rows.length, wanted.length);
  assert.match(await page.locator("#ops .told").first().innerText(), new RegExp(`^${wanted.length} match`));
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#op-table").getAttribute("aria-rowcount"), String(ops.length + 1));
  assert.equal(await page.locator("#op-search").inputValue(), "");
  await page.keyboard.type("no such op");
  assert.match(await page.locator("#ops .empty").first().innerText(), /No op matches\./);
  await close(page);
});

test("ops of a type, with a cast and with non-finite results can be singled out", async () => {
  const page = await open("overflow");
  const { ops } = await reportOf(page);
  await page.locator("#op-kind").selectOption({ label: "with a non-finite result" });
  const bad = ops.filter((op) => op.first_nonfinite_step !== null);
  assert.equal((await rowsOf(page, "op-table")).length, bad.length);
  assert.match((await rowsOf(page, "op-table"))[0].join("|"), /step 41 \(9 calls\)/);
  await page.locator("#op-kind").selectOption({ label: "computed in fp32" });
  assert.equal((await rowsOf(page, "op-table")).length, ops.filter((op) => op.dtype_after === "fp32").length);
  await close(page);
});

test("a head sorts by its column, both ways, and says so", async () => {
  const page = await open("overflow");
  const head = page.locator("#op-table th").filter({ hasText: "headroom" });
  await head.getByRole("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  await head.getByRole("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  const column = (await page.locator("#op-table th").allTextContents()).findIndex((title) => title.startsWith("headroom"));
  const shown = (await rowsOf(page, "op-table")).map((row) => Number(row[column].replace("−", "-")));
  assert.deepEqual(shown, [...shown].sort((a, b) => a - b));
  await close(page);
});

test("the precision map adds up: an op's time is not counted again for those it calls", async () => {
  const page = await open("healthy");
  const { ops } = await reportOf(page);
  const mapped = ops.filter((op) => op.phase === "forward" || op.phase === "backward");
  const own = (op) => op.time_ns - mapped.filter((other) => other.parent === op.site).reduce((sum, other) => sum + other.time_ns, 0);
  const total = mapped.reduce((sum, op) => sum + own(op), 0);
  const topLevel = mapped.filter((op) => op.parent === null).reduce((sum, op) => sum + op.time_ns, 0);
  assert.equal(total, topLevel, "the fixture's own times agree");
  const inFp32 = mapped.filter((op) => op.dtype_after === "fp32").reduce((sum, op) => sum + own(op), 0);
  const cells = await page.locator('[role="treegrid"] tbody tr').first().locator("td").allTextContents();
  assertShare(cells[5], inFp32 / total, "fp32 of the whole program");
  const attention = await page.locator('[role="treegrid"] tbody tr').filter({ hasText: "attention Attention" }).first().locator("td").allTextContents();
  const inside = mapped.filter((op) => op.module === "layers.0.attention" || op.module.startsWith("layers.0.attention."));
  assertShare(attention[1], inside.reduce((sum, op) => sum + own(op), 0) / total, "share of attention");
  assert.equal(Number(attention[8]), Number(Math.min(...inside.map((op) => op.headroom)).toFixed(1)), "its least headroom");
  await close(page);
});

test("the module tree folds and unfolds by keys, and Enter shows the module's ops", async () => {
  const page = await open("healthy");
  const { ops } = await reportOf(page);
  const rows = page.locator('[role="treegrid"] tbody tr');
  await rows.first().focus();
  const all = await rows.count();
  await page.keyboard.press("ArrowLeft");
  assert.equal(await rows.count(), 1, "the root folded");
  await page.keyboard.press("ArrowRight");
  assert.equal(await rows.count(), all);
  const focused = () => page.evaluate(() => document.activeElement.querySelector("td").textContent);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(), /^layers/);
  await page.keyboard.press("ArrowRight");
  assert.match(await focused(), /^0/);
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#ops .chip").innerText().then((text) => text.split(" ×")[0]), "module layers.0");
  assert.equal((await rowsOf(page, "op-table")).length, ops.filter((op) => op.module.startsWith("layers.0.")).length);
  await page.locator("#ops .chip").click();
  assert.ok(!(await page.locator("#ops .chip").isVisible()));
  await close(page);
});

test("parameters are found by name and chosen by keys", async () => {
  const page = await open("healthy");
  await page.locator("#parameter-search").fill("mlp.up");
  assert.equal((await rowsOf(page, "parameter-table")).length, 4);
  await page.locator("#parameter-table .row-button").first().focus();
  await page.keyboard.press("ArrowDown");
  const name = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("Enter");
  assert.ok((await page.locator("#gradients .choice").innerText()).includes(name));
  assert.equal(await page.evaluate(() => document.activeElement.textContent), name, "the focus stays");
  await close(page);
});

test("ten thousand ops: few rows in the document, every row within reach, the order right to the end", async () => {
  const page = await open("huge");
  const ops = await page.evaluate(() =>
    JSON.parse(document.getElementById("report").textContent).ops.map(({ absmax, module }) => ({ absmax, module })),
  );
  const viewport = page.locator("#ops .viewport");
  await viewport.scrollIntoViewIfNeeded();
  const drawn = () => page.locator("#op-table tbody tr:not(.spacer)").count();
  assert.ok((await drawn()) < 120);
  await page.locator("#op-table th").filter({ hasText: "largest" }).getByRole("button").click();
  await viewport.evaluate((element) => { element.scrollTop = element.scrollHeight; });
  await page.waitForFunction((count) => document.querySelector("#op-table tbody tr:last-child").getAttribute("aria-rowindex") === String(count + 1), ops.length);
  assert.ok((await drawn()) < 120);
  const column = (await page.locator("#op-table th").allTextContents()).findIndex((title) => title.startsWith("largest"));
  const last = (await rowsOf(page, "op-table")).at(-1)[column];
  assert.equal(Number(last), Math.min(...ops.map((op) => op.absmax)));
  // Half way down, the row that is drawn at the top is the one that belongs there.
  await viewport.evaluate((element) => { element.scrollTop = 5000 * 25; });
  await page.waitForFunction(() => {
    const index = Number(document.querySelector("#op-table tbody tr:not(.spacer)").getAttribute("aria-rowindex"));
    return index > 4900 && index <= 5002;
  });
  await page.locator("#op-search").fill("blocks.249");
  assert.equal(await page.locator("#ops .told").first().innerText(), `${ops.filter((op) => op.module.startsWith("blocks.249.")).length} matches`);
  await close(page);
});

test("the calls before an anomaly can be stepped through", async () => {
  const page = await open("overflow");
  const { flight_records: [record], ops } = await reportOf(page);
  const details = page.locator("details.flight");
  await details.locator("summary").click();
  const says = details.locator("output");
  const firstBad = record.calls.findIndex((call) => call.nonfinite);
  const opOf = (index) => ops.find((op) => op.site === record.calls[index].site).op;
  assert.match(await says.innerText(), /NaN or infinity came out/);
  assert.ok((await says.innerText()).includes(opOf(firstBad)));
  await details.getByRole("button", { name: "Call before" }).click();
  assert.equal(await details.locator("input").inputValue(), String(firstBad - 1));
  assert.ok((await says.innerText()).includes(opOf(firstBad - 1)));
  await details.locator("input").focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowRight");
  assert.equal(await details.locator("input").inputValue(), String(record.calls.length - 1));
  await details.getByRole("button", { name: "First that is not finite" }).click();
  assert.equal(await details.locator("input").inputValue(), String(firstBad));
  assert.equal(await details.locator("circle").count(), record.calls.filter((call) => call.absmax !== null).length);
  await close(page);
});

test("a comparison with higher precision is shown where there was one, and only there", async () => {
  const compared = await open("overflow");
  const titles = await compared.locator("#op-table th").allTextContents();
  const column = titles.findIndex((title) => title.startsWith("ulp"));
  assert.ok(column > 0);
  await compared.locator("#op-search").fill("linear layers.2");
  const row = (await rowsOf(compared, "op-table")).find((cells) => cells.includes("forward"));
  assert.equal(row[column], "0.27 / 3.5");
  await close(compared);
  const without = await open("healthy");
  assert.ok(!(await without.locator("#op-table th").allTextContents()).some((title) => title.startsWith("ulp")));
  await close(without);
});
