// The picture in a browser: zoom, search, reset. Figures as in page.test.mjs, first thread.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { closeBrowser, draw, open } from "./pages.mjs";

const files = {};
before(() => { for (const kind of ["small", "hostile"]) files[kind] = draw(kind, "svg"); });
after(closeBrowser);

// Name, shown text and width of every frame in sight.
const frames = (page) => page.locator("#frames g").evaluateAll((list) => list
  .filter((g) => getComputedStyle(g).display !== "none")
  .map((g) => [g.children[0].textContent.split("\n")[0], g.children[2].textContent, Math.round(g.children[1].getAttribute("width"))]));

it("zooms on a click and back", async () => {
  const { page, seen, address, close } = await open(files.small);
  assert.deepEqual(await frames(page), [
    ["all", "all", 1180], ["main", "main", 1180],
    ["read_all", "read_all", 590], ["sum(int const*, int)", "sum(int const*, int)", 472], ["sum(int const*, int)", "sum", 118],
  ]);
  await page.locator("#frames g").nth(3).click();
  assert.deepEqual(await frames(page), [
    ["all", "all", 1180], ["main", "main", 1180],
    ["sum(int const*, int)", "sum(int const*, int)", 1180], ["sum(int const*, int)", "sum(int const*, int)", 295],
  ]);
  await page.locator("#reset").click();
  assert.equal((await frames(page)).length, 5);
  assert.deepEqual(seen, { requests: [address], errors: [] });
  await close();
});

it("searches, and says the share that matches", async () => {
  const { page, close } = await open(files.small);
  // The window's question is answered with "read".
  await page.locator("#search").click();
  assert.equal(await page.locator("#matched").textContent(), "matched 50.0 %");
  assert.equal(await page.locator("#frames g.hit").count(), 1);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#frames g.hit").count(), 0);
  await close();
});

it("tells about the frame under the pointer", async () => {
  const { page, close } = await open(files.small);
  await page.locator("#frames g").nth(2).hover();
  assert.match(await page.locator("#details").textContent(), /^read_all: 500\.0 ms \(50\.0 %\), self 500\.0 ms \(50\.0 %\), 10 calls/);
  await close();
});

it("runs nothing of a name", async () => {
  const { page, seen, close } = await open(files.hostile);
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.locator("script").count(), 1);
  assert.deepEqual(seen.errors, []);
  await close();
});
