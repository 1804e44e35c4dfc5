// A report of 1,000 parameters over 60 windows and 10,000 ops opens in less than two seconds of work.
import assert from "node:assert/strict";
import { test } from "node:test";
import { close, open } from "./browser.mjs";

test("the work of opening a large report stays under two seconds", async (t) => {
  const page = await open("huge");
  const client = await page.context().newCDPSession(page);
  // Measured as processor time of the page's own thread, which other load on the machine does not lengthen much.
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.reload();
  await page.waitForSelector("html[data-ready]", { timeout: 120_000 });
  const { metrics } = await client.send("Performance.getMetrics");
  const seconds = metrics.find((metric) => metric.name === "TaskDuration").value;
  t.diagnostic(`${seconds.toFixed(2)} s of processor time in the page's thread`);
  assert.ok(seconds > 0.01, "the time was measured");
  assert.ok(seconds < 2, `${seconds} s`);
  await close(page);
});
