// Names of the watched program are shown as text, whatever they hold.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, open } from "./browser.mjs";

test("hostile names are text everywhere and run nothing", async () => {
  const page = await open("hostile");
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  await page.locator("#parameter-table .row-button").first().click();
  await page.locator('[role="treegrid"] tbody tr').nth(1).click();
  await page.locator(".plots").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2, "the report and the page's own");
  const breakout = "</script><script>window.hacked=1</script>";
  for (const where of ["h1", ".facts", "#findings", "#loss-scale-over-steps", "#parameter-table", "#op-table", "#not-looked-at"]) {
    assert.ok((await page.locator(where).textContent()).includes(breakout), `${where} shows it`);
  }
  await close(page);
});

test("characters that reorder or hide text are spelled out", async () => {
  const page = await open("hostile");
  const text = await page.locator("main").textContent();
  assert.doesNotMatch(text, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/);
  assert.ok(text.includes("\\u202e"));
  await close(page);
});

test("evidence named like a part of JavaScript's objects is evidence", async () => {
  const page = await open("hostile");
  const names = await page.locator(".evidence").first().locator("dt").allTextContents();
  assert.ok(names.includes("not a number") && names.some((name) => name.trim() === "proto"));
  assert.ok((await page.locator(".evidence").first().innerText()).includes("NaN"));
  await close(page);
});
