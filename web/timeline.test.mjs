// The time line in the page. Figures are those of the profile `points`: `small` of 1.25 s, where thread 71 has a counter `queue length` of
// 0, 10, 0, 10 at 0, 312.5, 625 and 937.5 ms, the mark `frame` at 100 ms and 1 s, and a note at 500 ms; thread 72 has a
// counter of 0.25 at 200 ms and -1.5 at 800 ms.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { closeBrowser, draw, open } from "./pages.mjs";

const files = {};
before(() => {
  for (const kind of ["points", "crowded", "small"]) files[kind] = draw(kind, "html");
});
after(closeBrowser);

async function on(kind, test) {
  const opened = await open(files[kind]);
  try {
    await test(opened.page);
    assert.deepEqual(opened.seen.errors, []);
    assert.deepEqual(opened.seen.requests, [opened.address], "only the file itself is loaded");
  } finally {
    await opened.close();
  }
}

const GUTTER = 190, AXIS = 22;
const told = async (page) => (await page.locator("#point").innerText()).trim().split(/\n+/);
const line = (page) => page.locator("#timeline svg");
// Where a part of the whole time lies in the drawing; lanes are 30 high, of counters 46.
async function click(page, part, y) {
  const { width } = await line(page).boundingBox();
  await line(page).click({ position: { x: GUTTER + part * (width - GUTTER - 10), y } });
}
const [MARKS, QUEUE, LOAD] = [AXIS + 15, AXIS + 30 + 23, AXIS + 30 + 46 + 23];
const lanes = (page) => page.locator("#timeline g.lane").evaluateAll((list) => list.map((lane) => [...lane.querySelectorAll("text")].map((text) => text.lastChild.nodeValue)));
const ticks = (page) => page.locator("#timeline .axis text").allTextContents();

describe("the time line", () => {
  it("is not there where there is nothing on it", () => on("small", async (page) => {
    assert.equal(await page.locator("#timeline").isVisible(), false);
  }));

  it("has a lane for marks and notes of each thread and one for each counter", () => on("points", async (page) => {
    assert.equal(await page.locator("#timeline .shown").innerText(), "9 points.");
    const names = (await lanes(page)).map((texts) => texts.map((text) => text ?? ""));
    assert.deepEqual(names.map(([, thread]) => thread), ["small (71)", "small (71)", "reader (72)"]);
    assert.deepEqual(names[1].slice(2), ["10", "0"], "the most and the least of the counter");
    assert.deepEqual(names[2].slice(2), ["0.25", "-1.5"]);
    assert.equal(await page.locator("#timeline rect.mark").count(), 2);
    assert.equal(await page.locator("#timeline circle.note").count(), 1);
    assert.equal(await page.locator("#timeline circle.value").count(), 6);
    assert.equal(await page.locator("#timeline path.values").count(), 2);
  }));

  it("draws a counter as a line that stays until the next value", () => on("points", async (page) => {
    const path = await page.locator("#timeline path.values").first().getAttribute("d");
    const points = path.match(/[ML][\d. ]+/g).map((step) => step.slice(1).split(" ").map(Number));
    const [low, high] = [AXIS + 30 + 46 - 7, AXIS + 30 + 7];
    assert.deepEqual(points.map(([, y]) => y), [low, low, high, high, low, low, high, high]);
    const { width } = await line(page).boundingBox();
    const at = (part) => GUTTER + part * (width - GUTTER - 10);
    for (const [i, part] of [[0, 0], [1, 0.25], [2, 0.25], [4, 0.5], [6, 0.75], [7, 1]]) {
      assert.ok(Math.abs(points[i][0] - at(part)) < 1, `${i}: ${points}`);
    }
  }));

  it("says what a point is that is clicked", () => on("points", async (page) => {
    assert.match((await told(page))[0], /^Click a point/);
    await click(page, 0.08, MARKS);
    assert.deepEqual(await told(page), ["small (71)", "100.0 ms mark frame"]);
    await click(page, 0.4, MARKS);
    const note = await told(page);
    assert.equal(note[1], "500.0 ms note half of it\\x0ais </script> done");
    assert.equal(await page.locator("#timeline .note.chosen").count(), 1);
    await click(page, 0.75, QUEUE);
    assert.deepEqual(await told(page), ["small (71)", "937.5 ms counter queue length 10"]);
    await click(page, 0.64, LOAD);
    assert.deepEqual(await told(page), ["reader (72)", "800.0 ms counter <b>load</b> -1.5"]);
    await click(page, 0.3, MARKS);
    assert.match((await told(page))[0], /^Click a point/);
  }));

  it("goes from point to point by keys", () => on("points", async (page) => {
    await line(page).focus();
    for (const expected of ["100.0 ms mark frame", /^500\.0 ms note/, "1.000 s mark frame"]) {
      await page.keyboard.press("ArrowRight");
      const [, point] = await told(page);
      if (expected instanceof RegExp) assert.match(point, expected);
      else assert.equal(point, expected);
    }
    await page.keyboard.press("ArrowRight");
    assert.equal((await told(page))[1], "1.000 s mark frame", "there is none behind the last");
    await page.keyboard.press("ArrowLeft");
    assert.match((await told(page))[1], /^500\.0 ms note/);
    await page.keyboard.press("Escape");
    assert.match((await told(page))[0], /^Click a point/);
  }));

  it("zooms by wheel, keys and buttons, and moves", () => on("points", async (page) => {
    const all = await ticks(page);
    assert.equal(all[0], "0 ns");
    await page.locator('#timeline [value="in"]').click();
    const half = await ticks(page);
    assert.ok(half[0] !== "0 ns" && half.length > 1, String(half));
    await click(page, 0.5 + (0.4 - 0.5) * 2, MARKS);
    assert.match((await told(page))[1], /^500\.0 ms note/);
    const box = await line(page).boundingBox();
    await page.mouse.move(box.x + GUTTER + 300, box.y + MARKS);
    await page.mouse.down();
    await page.mouse.move(box.x + GUTTER + 5000, box.y + MARKS, { steps: 4 });
    await page.mouse.up();
    assert.equal((await ticks(page))[0], "0 ns", "moved to its beginning");
    await page.keyboard.down("Control");
    await page.mouse.move(box.x + GUTTER, box.y + MARKS);
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    assert.ok((await ticks(page)).every((text) => text.endsWith("ms") || text === "0 ns"), String(await ticks(page)));
    await page.locator('#timeline [value="all"]').click();
    assert.deepEqual(await ticks(page), all);
  }));

  it("keeps few of half a million points, and says so", () => on("crowded", async (page) => {
    const shown = await page.locator("#timeline .shown").innerText();
    const [, here, all] = /^([\d,]+) of ([\d,]+) points are in this page: .* teeperf report --time-line has all\.$/.exec(shown) ?? [shown];
    assert.ok(Number(here?.replaceAll(",", "")) < 20_500 && all === "500,005", shown);
    assert.ok(statSync(files.crowded).size < statSync(files.small).size + 500_000);
    await click(page, 0.5, QUEUE);
    const points = await told(page);
    assert.match(points[1], /^6\d\d\.\d ms counter queue length (0|10)( and [\d,]+ more up to the next)?$/);
    assert.match(points.at(-1), /more: zoom in to see them apart\.$/);
    assert.ok(await page.locator("#timeline svg *").count() < 3000);
  }));
});
