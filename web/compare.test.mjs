// The page of a comparison. Figures are those of the example `compared`:
//
//   before  main 100 ms ── read_all 500 ms, sum 300 ms ── old 100 ms
//   after   main 100 ms ── read_all 505 ms, sum 500 ms ── new 100 ms

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { closeBrowser, draw, open } from "./pages.mjs";

let file, bySamples;
before(() => {
  [file, bySamples] = ["compared", "compared-samples"].map((kind) => draw(kind, "html"));
});
after(closeBrowser);

async function on({ of = file, ...options }, test) {
  const opened = await open(of, options);
  try {
    await test(opened.page);
    assert.deepEqual(opened.seen.errors, []);
    assert.deepEqual(opened.seen.requests, [opened.address.split("#")[0]], "only the file itself is loaded");
  } finally {
    await opened.close();
  }
}

const tip = async (page, share, row) => {
  const { width } = await page.locator("canvas").boundingBox();
  await page.locator("canvas").hover({ position: { x: share * width, y: 20 * row + 10 } });
  return page.locator("#tip").innerText();
};
const colour = (page, share, row) => page.locator("canvas").evaluate((canvas, [share, row]) => {
  const ratio = canvas.width / canvas.clientWidth;
  return [...canvas.getContext("2d").getImageData(share * canvas.width, (20 * row + 3) * ratio, 1, 1).data.slice(0, 3)];
}, [share, row]);
const rows = (page) => page.locator("#table tbody tr").evaluateAll((list) => list.map((tr) => [...tr.cells].map((td) => td.innerText.trim())));

describe("a comparison", () => {
  it("has widths of after, red where it grew, grey for noise", () => on({}, async (page) => {
    assert.match(await page.locator("header").innerText(), /1\.000 s → 1\.205 s, \+20\.5 %[\s\S]*1 run → 1 run/);
    assert.match(await page.locator("#legend").innerText(), /takes longer than before[\s\S]*takes less[\s\S]*noise/);
    // After: sum 600 ms and read_all 505 ms of 1,205.
    assert.match(await tip(page, 0.2, 2), /^sum\(int const\*, int\)\n[\s\S]*Change of self\s+\+200\.0 ms, \+66\.7 %/);
    assert.match(await tip(page, 0.7, 2), /^read_all\n[\s\S]*Change of self\s+\+5\.000 ms, \+1\.0 % \(within noise\)/);
    assert.match(await tip(page, 0.04, 3), /^new\n[\s\S]*\+100\.0 ms, new/);
    const [red, , blue] = await colour(page, 0.45, 2);
    assert.ok(red > blue + 40, `${red} ${blue}`);
    const grey = await colour(page, 0.9, 2);
    assert.equal(grey[0], grey[2]);
  }));

  it("has widths of before, where what is gone is seen, in blue", () => on({}, async (page) => {
    await page.locator("#thread").selectOption({ label: "Before" });
    // Before: read_all 500 ms, sum 400 ms of 1,000; below it old.
    assert.match(await tip(page, 0.55, 3), /^old\n[\s\S]*−100\.0 ms, −100\.0 %/);
    const [red, , blue] = await colour(page, 0.59, 3);
    assert.ok(blue > red + 40, `${red} ${blue}`);
    assert.equal(await page.evaluate(() => location.hash), "#thread=1");
  }));

  it("colours by total, and functions first", () => on({}, async (page) => {
    const grey = await colour(page, 0.95, 1);
    assert.equal(grey[0], grey[2]);
    await page.locator("#colour button", { hasText: "Total" }).click();
    await page.waitForTimeout(100);
    const [red, , blue] = await colour(page, 0.95, 1);
    assert.ok(red > blue + 20, `${red} ${blue}`);
    await page.locator("#view button", { hasText: "Bottom-up" }).click();
    assert.match(await tip(page, 0.1, 1), /^read_all\n[\s\S]*Change\s+\+5\.000 ms/);
    assert.match(await tip(page, 0.6, 1), /^sum\(int const\*, int\)\n[\s\S]*Change\s+\+200\.0 ms/);
  }));

  it("has neither waiting nor hooks of samples", () => on({ of: bySamples }, async (page) => {
    const heads = await page.locator("#table th").allInnerTexts();
    assert.deepEqual(heads, ["Function", "Module", "Change of self", "Self", "Total", "Calls"]);
    const facts = await page.locator("#facts").innerText();
    assert.match(facts, /^1\.000 s → [^\n]*\s+1 run → 1 run\s+clock tick$/);
  }));

  it("has a table by change", () => on({}, async (page) => {
    assert.deepEqual((await rows(page)).map(([name, , change]) => [name, change]), [
      ["sum(int const*, int)", "+200.0 ms, +66.7 %"],
      ["old", "−100.0 ms, −100.0 %"],
      ["new", "+100.0 ms, new"],
      ["read_all", "+5.000 ms, +1.0 % (within noise)"],
      ["main", "+0 ns, +0.0 % (within noise)"],
    ]);
  }));
});
