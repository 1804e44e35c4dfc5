// How long a browser works to open an HTML report, and to answer to what people do with it.
//
//   node open_report.mjs REPORT.html [ROUNDS]
//
// AMPSCOPE_BROWSER_PACKAGES: a folder whose node_modules has playwright-core (tests/viewer after `npm ci`);
// AMPSCOPE_CHROMIUM: the browser. Processor time of the page's thread beside wall time: other load on the machine
// lengthens the first hardly and the second a lot.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [file, rounds = "3"] = process.argv.slice(2);
if (!file) {
  console.error("usage: node open_report.mjs REPORT.html [ROUNDS]");
  process.exit(2);
}
const packages = process.env.AMPSCOPE_BROWSER_PACKAGES ?? "tests/viewer";
const { chromium } = createRequire(resolve(packages, "package.json"))("playwright-core");
const browser = await chromium.launch({
  executablePath: process.env.AMPSCOPE_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
});

/** Seconds of processor and wall time that `work` takes in the page. */
async function measure(page, client, work) {
  const processor = async () =>
    (await client.send("Performance.getMetrics")).metrics.find((metric) => metric.name === "TaskDuration").value;
  const before = await processor();
  const started = performance.now();
  await work();
  // Two frames: what was asked for has been laid out and painted.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { processor: (await processor()) - before, wall: (performance.now() - started) / 1000 };
}

const results = new Map();
const note = (name, result) => results.set(name, [...(results.get(name) ?? []), result]);

for (let round = 0; round < Number(rounds); round += 1) {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  const address = pathToFileURL(resolve(file)).href;
  const started = performance.now();
  await page.goto(address);
  await page.waitForSelector("html[data-ready]", { timeout: 300_000 });
  const wall = (performance.now() - started) / 1000;
  const { metrics } = await client.send("Performance.getMetrics");
  note("open", { processor: metrics.find((metric) => metric.name === "TaskDuration").value, wall });
  note("scroll a screen", await measure(page, client, () => page.mouse.wheel(0, 900)));
  const slider = page.locator('input[type="range"]').first();
  if (await slider.count()) {
    note("move the loss-scale slider by one", await measure(page, client, () => slider.press("ArrowRight")));
  }
  const row = page.locator("#parameters tbody tr").nth(1);
  if (await row.count()) note("choose a parameter", await measure(page, client, () => row.click()));
  const head = page.locator("#parameters thead button").first();
  if (await head.count()) note("sort the parameters", await measure(page, client, () => head.click()));
  await page.context().close();
}
await browser.close();

const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
for (const [name, rows] of results) {
  const processor = middle(rows.map((row) => row.processor));
  const took = middle(rows.map((row) => row.wall));
  console.log(`${name.padEnd(36)} ${processor.toFixed(2)} s of processor time, ${took.toFixed(2)} s`);
}
