// One Chromium for a suite, and pages of it that notice every error and every request.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.AMPSCOPE_BROWSER_PACKAGES}/package.json`);
const { chromium } = require("playwright-core");

export const axeSource = require.resolve("axe-core/axe.min.js");
export const fixtures = ["healthy", "clipped", "overflow", "underflow", "bf16", "huge", "hostile", "empty"];

let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.AMPSCOPE_CHROMIUM,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
      "--no-first-run", "--disable-dev-shm-usage",
    ],
  });
});

after(() => browser?.close());

/**
 * Opens a fixture and waits until it is drawn. The page returned has `troubles`: what went wrong so far, that is
 * messages on the console, exceptions, and requests beyond the file itself.
 */
export async function open(name, { hash = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const file = pathToFileURL(`${process.env.AMPSCOPE_FIXTURES}/${name}.html`).href;
  page.troubles = [];
  page.on("console", (message) => page.troubles.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => page.troubles.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== file) page.troubles.push(`request: ${request.url()}`);
  });
  await page.goto(file + hash);
  await page.waitForSelector("html[data-ready]", { timeout: 120_000 });
  return page;
}

export async function close(page) {
  assert.deepEqual(page.troubles, []);
  await page.context().close();
}

/** The report that stands in the page, read by the browser as JSON and by nothing of ours. */
export function reportOf(page) {
  return page.evaluate(() => JSON.parse(document.getElementById("report").textContent));
}

/** "36.4 %" as a share; the page writes shares that are nearly nothing or nearly all as bounds. */
export function share(text) {
  const match = /^([<>]?) ?([\d.]+) %$/.exec(text.trim());
  assert.ok(match, `"${text}" is no share`);
  return { bound: match[1], value: Number(match[2]) / 100 };
}

/** Whether `text` says `expected` to the digits that it shows. */
export function assertShare(text, expected, what) {
  const { bound, value } = share(text);
  if (bound === "<") assert.ok(expected > 0 && expected < value, `${what}: ${text} for ${expected}`);
  else if (bound === ">") assert.ok(expected < 1 && expected > value, `${what}: ${text} for ${expected}`);
  else {
    const digits = text.trim().replace(" %", "").split(".")[1]?.length ?? 0;
    const rounding = expected < 0.1 && digits > 0 ? 0.5 * 10 ** -(digits + 2) : Math.max(0.5 * 10 ** -(digits + 2), expected * 0.006);
    assert.ok(Math.abs(value - expected) <= rounding * 1.0001, `${what}: ${text} for ${expected}`);
  }
}
