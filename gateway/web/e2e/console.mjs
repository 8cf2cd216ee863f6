/**
 * The console in a real browser, against a real gateway.
 *
 *   node e2e/console.mjs URL JOB_ID [--shots FOLDER]
 *
 * JOB_ID names a six-image run, best one that is still at work: it is followed live until its six pictures are shown, looked
 * at one by one, read again from its log, and found in the ledger. Any error of the page fails the test. The browser is
 * `$CHROMIUM`, else `/usr/bin/chromium`.
 */

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const IMAGES = 6;
const PRICE = "$0.04";
const TOTAL = "$0.24";
const PATIENCE_MS = 60_000;

const { positionals, values } = parseArgs({ allowPositionals: true, options: { shots: { type: "string" } } });
const [url, jobId] = positionals;
if (url === undefined || jobId === undefined) {
  console.error("usage: node e2e/console.mjs URL JOB_ID [--shots FOLDER]");
  process.exit(2);
}
const base = url.replace(/\/+$/, "");
const faults = [];
const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => faults.push(`page: ${error.message}`));
  page.on("crash", () => faults.push("the page crashed"));

  await findRun(page);
  await followRun(page);
  await lookAtPictures(page);
  await readAgain(page);
  await readLedger(page);
  assert.deepEqual(faults, [], "the page reported errors");
  tell("no errors");
} catch (error) {
  console.error(error);
  for (const fault of faults) console.error(fault);
  process.exitCode = 1;
} finally {
  await browser.close();
}

async function findRun(page) {
  await page.goto(`${base}/`);
  const link = page.locator(`.run-link[href$="/runs/${jobId}"]`);
  await link.waitFor();
  tell(`the list shows the run "${await textOf(link)}", ${await textOf(page.locator(".run", { has: link }).locator(".status"))}`);
  await shoot(page, "runs");
  await link.click();
  await page.locator(".run-head").waitFor();
}

async function followRun(page) {
  const status = page.locator(".run-title .status");
  const counts = [];
  let live = 0;
  while (counts.at(-1) !== IMAGES) {
    // Resolves on the next change, not after a while: every picture is seen as it comes.
    const next = await page.waitForFunction(loadedPictures, counts.at(-1) ?? -1, { polling: 50 }).catch((error) => {
      throw new Error(`no further picture; ${counts.at(-1) ?? 0} of ${IMAGES} are there`, { cause: error });
    });
    const shown = (await next.jsonValue()) - 1;
    assert.ok(shown <= IMAGES, `${shown} pictures instead of ${IMAGES}`);
    counts.push(shown);
    const doing = await textOf(status);
    if (doing === "running") live += 1;
    tell(`${shown} of ${IMAGES} pictures loaded, the run is ${doing}`);
    if (shown < IMAGES) await shoot(page, `live-${shown}`);
  }
  if (counts[0] < IMAGES / 2) assert.ok(live > 1, "the run was opened early, and yet its pictures did not come while it ran");
  await page.locator(".run-title .status", { hasText: "completed" }).waitFor();
  await page.locator(".run-head .amount", { hasText: exactly(TOTAL) }).waitFor();
  assert.equal(await page.locator(".tile-pending").count(), 0, "something is still being made");
  await shoot(page, "run");
}

/** In the page: how many pictures are loaded, plus one, once that is another number than `before`; else false. */
function loadedPictures(before) {
  const pictures = [...document.querySelectorAll(".run-main .tile-image img")];
  // Pictures below the window load when they are scrolled to.
  for (const one of pictures) one.loading = "eager";
  const loaded = pictures.filter((one) => one.complete && one.naturalWidth > 0).length;
  return loaded !== before && loaded + 1;
}

async function lookAtPictures(page) {
  await page.locator(".run-main .tile-image button").first().click();
  const dialog = page.locator("dialog[open]");
  await dialog.waitFor();
  const seen = new Set();
  for (let at = 1; at <= IMAGES; at += 1) {
    if (at > 1) await page.keyboard.press("ArrowRight");
    await dialog.locator(".box-head .muted", { hasText: exactly(`${at} of ${IMAGES}`) }).waitFor();
    seen.add(await largePicture(page));
    if (at === 2) await shoot(page, "large");
  }
  assert.equal(seen.size, IMAGES, "the arrow keys lead to a different picture each");
  await page.keyboard.press("ArrowLeft");
  await dialog.locator(".box-head .muted", { hasText: exactly(`${IMAGES - 1} of ${IMAGES}`) }).waitFor();
  assert.ok(seen.has(await largePicture(page)), "back to a picture that was seen");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  tell(`the arrow keys led through ${seen.size} pictures in the large view`);
}

/** The address of the large picture, once it is there. */
async function largePicture(page) {
  const handle = await page.waitForFunction(() => {
    const picture = document.querySelector("dialog[open] .box-stage img");
    return picture !== null && picture.complete && picture.naturalWidth > 0 && picture.src;
  });
  return handle.jsonValue();
}

async function readAgain(page) {
  await page.reload();
  await page.waitForFunction(loadedPictures, -1);
  const handle = await page.waitForFunction(
    (wanted) => document.querySelectorAll(".run-main .tile-image .picture-there").length === wanted,
    IMAGES,
  );
  await handle.dispose();
  await page.locator(".run-head .amount", { hasText: exactly(TOTAL) }).waitFor();
  tell(`after reloading: ${IMAGES} pictures, ${TOTAL}`);
}

async function readLedger(page) {
  await page.goto(`${base}/#/ledger?job_id=${jobId}`);
  const rows = page.locator("tbody .row");
  await rows.nth(IMAGES - 1).waitFor();
  await page.locator(".totals .amount", { hasText: exactly(TOTAL) }).waitFor();
  assert.equal(await rows.count(), IMAGES, "one row for each call");
  for (const row of await rows.all()) {
    assert.equal(await textOf(row.locator(".status")), "completed");
    assert.equal(await textOf(row.locator(".amount")), PRICE);
  }
  await shoot(page, "ledger");
  tell(`the ledger: ${IMAGES} completed rows with ${PRICE}, ${TOTAL} in total`);
}

async function textOf(locator) {
  return (await locator.innerText()).trim();
}

function exactly(text) {
  return new RegExp(`^\\s*${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}\\s*$`);
}

async function shoot(page, name) {
  if (values.shots === undefined) return;
  await mkdir(values.shots, { recursive: true });
  await page.screenshot({ path: join(values.shots, `${name}.png`) });
}

function tell(text) {
  console.log(text);
}
