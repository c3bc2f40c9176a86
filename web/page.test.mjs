// The page as a user has it: opened from a file, without a network.
//
// Figures are those of the profile `small`, built by hand:
//
//   small/71   main 1 s (self 100 ms)
//                read_all 500 ms (500), 10 calls
//                sum 400 ms (300), 4 calls ── sum 100 ms (100), 2 calls
//   reader/72  main 250 ms (0) ── read_all 250 ms (250), 5 calls
//
// `waiting` is the same with samples, where threads waited and hooks took time:
//
//   small/71   waits 500 ms outside of main
//                read_all waits 2 s
//                sum waits 10 ms, hooks 40 ms ── sum waits 20 ms, hooks 20 ms
//   reader/72  main hooks 1 ms ── read_all waits 4 s

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { closeBrowser, draw, open } from "./pages.mjs";

const files = {};
before(() => {
  const kinds = [
    "small", "full", "nameless", "short", "waiting", "hostile", "deep", "single", "empty",
    "million", "demo",
  ];
  for (const kind of kinds) files[kind] = draw(kind, "html");
});
after(closeBrowser);

async function on(kind, options, test) {
  const opened = await open(files[kind], options);
  try {
    await test(opened.page, opened);
    assert.deepEqual(opened.seen.errors, []);
    assert.deepEqual(opened.seen.requests, [opened.address.split("#")[0]], "only the file itself is loaded");
  } finally {
    await opened.close();
  }
}

const rows = (page) => page.locator("#table tbody tr").evaluateAll((list) => list.map((tr) => [...tr.cells].map((td) => td.innerText.trim())));
const names = async (page) => (await rows(page)).map(([name]) => name);
const crumbs = (page) => page.locator("#crumbs button").allInnerTexts();
const hash = (page) => page.evaluate(() => location.hash);

// Frames stand in rows of 20 pixels; the root is the first.
const frameAt = (page, x, row) => page.locator("canvas").click({ position: { x, y: 20 * row + 10 } });
const tip = async (page, x, row) => {
  await page.locator("canvas").hover({ position: { x, y: 20 * row + 10 } });
  return page.locator("#tip").innerText();
};
// Where in its width a share of the canvas lies.
const across = async (page, share) => share * (await page.locator("canvas").boundingBox()).width;

describe("figures", () => {
  it("has a row for each function, recursion counted once", () => on("small", {}, async (page) => {
    assert.deepEqual(await rows(page), [
      ["read_all", "libread.so", "750.0 ms 60.0 %", "750.0 ms 60.0 %", "15", "50.00 ms"],
      ["sum(int const*, int)", "small", "400.0 ms 32.0 %", "400.0 ms 32.0 %", "6", "66.67 ms"],
      ["main", "small", "100.0 ms 8.00 %", "1.250 s 100.0 %", "2", "625.0 ms"],
    ]);
    assert.match(await page.locator("header").innerText(), /teeperf\s+small input\.txt[\s\S]*46 calls and returns/);
  }));

  it("knows the mean of short calls where many ticks fell into them, as the report does", () => on("short", {}, async (page) => {
    const means = new Map((await rows(page)).map((cells) => [cells[0], cells[5]]));
    assert.deepEqual([means.get("few"), means.get("many")], ["< 252.5 ns", "1.476 µs"]);
    const report = readFileSync(draw("short", "txt"), "utf8").replace(/\x1b\[[0-9;]*m/g, "");
    for (const [name, mean] of means) assert.match(report, new RegExp(` ${mean}~? +${name} `));
    assert.match(await tip(page, await across(page, 0.04), 2), /^many\n[\s\S]*Per call\s+1\.476 µs/);
  }));

  // Bounds of self time and total as a row's titles have them, by function.
  const bounds = async (page) => new Map(await page.locator("#table tbody tr").evaluateAll((list) => list.map((tr) => [
    tr.cells[0].innerText.trim(), [2, 3].map((at) => tr.cells[at].querySelector("span").title),
  ])));
  const title = (low, high) => `Known no better than to 30 %: between ${low} and ${high}`;

  it("has bounds as wide as what found no room makes them", () => on("full", {}, async (page) => {
    const titles = await bounds(page);
    assert.deepEqual(titles.get("main"), ["", title("30.00 ns", "1.330 µs")]);
    assert.deepEqual(titles.get("fill"), ["", title("20.00 ns", "1.320 µs")]);
    assert.deepEqual(titles.get("serve"), [title("0 ns", "500.0 ns"), title("0 ns", "1.300 µs")]);
    assert.deepEqual(titles.get("wait"), Array(2).fill(title("802.0 ns", "1.302 µs")));
    assert.deepEqual([titles.get("idle"), titles.get("[no room]")], [["", ""], ["", ""]]);
    const means = (await rows(page)).map((cells) => [cells[0], cells[5]]);
    const told = [["wait", "–"], ["[no room]", "–"], ["fill", "–"], ["main", "–"], ["idle", "9.000 ns"], ["serve", "–"]];
    assert.deepEqual(means, told);
    const path = await tip(page, await across(page, 0.3), 2);
    assert.match(path, /^wait\n[\s\S]*Total lies\s+between 800\.0 ns and 1\.300 µs[\s\S]*Per call\s+–/);
    await page.locator("#view button").nth(1).click();
    assert.match(await tip(page, await across(page, 0.3), 1), /^wait\n[\s\S]*Time lies\s+between 802\.0 ns and 1\.302 µs/);
  }));

  it("says of every function that what has none may be its", () => on("nameless", {}, async (page) => {
    const titles = await bounds(page);
    assert.deepEqual(titles.get("fill"), [title("20.00 ns", "520.0 ns"), title("20.00 ns", "1.320 µs")]);
    assert.deepEqual(titles.get("idle"), [title("7.000 ns", "507.0 ns"), title("9.000 ns", "1.309 µs")]);
    assert.deepEqual(titles.get("wait"), Array(2).fill(title("802.0 ns", "1.302 µs")));
    await page.locator("#thread").selectOption("1");
    assert.deepEqual((await bounds(page)).get("idle"), ["", ""]);
  }));

  it("says what a frame is under the pointer", () => on("small", {}, async (page) => {
    const text = await tip(page, await across(page, 0.3), 2);
    assert.match(text, /read_all\nlibread\.so · src\/r\.c:17\n/);
    assert.match(text, /Total\s+750\.0 ms \(60\.0 %\)/);
    assert.match(text, /Calls\s+15/);
  }));

  describe("beside CPU time", () => {
    const heads = (page, table) => page.locator(`${table} th`).allInnerTexts();
    const beside = async (page) => (await rows(page)).map(
      (cells) => [cells[0], ...cells.slice(4, 6)]);
    const sum = "sum(int const*, int)";

    it("has those of functions, recursion once", () => on("waiting", {}, async (page) => {
      const expected = ["Self", "Total", "Waiting", "Hooks", "Calls", "Per call"];
      assert.deepEqual((await heads(page, "#table")).slice(2), expected);
      assert.deepEqual((await rows(page)).map((cells) => cells.length), [8, 8, 8]);
      assert.deepEqual(await beside(page), [
        ["read_all", "6.000 s", ""], [sum, "30.00 ms", "60.00 ms"], ["main", "6.030 s", "1.000 ms"],
      ]);
      await page.locator("#thread").selectOption({ label: "reader (72)" });
      assert.deepEqual(await beside(page), [
        ["read_all", "4.000 s", ""], ["main", "4.000 s", "1.000 ms"],
      ]);
      await page.locator("#thread").selectOption({ label: "small (71)" });
      assert.deepEqual(await beside(page), [
        ["read_all", "2.000 s", ""], [sum, "30.00 ms", "60.00 ms"], ["main", "2.030 s", ""],
      ]);
    }));

    it("has the figures of the text report", () => on("waiting", {}, async (page) => {
      const report = readFileSync(draw("waiting", "txt"), "utf8").replace(/\x1b\[[0-9;]*m/g, "");
      for (const [name, ...figures] of await beside(page)) {
        const line = report.split("\n").find((line) => line.endsWith(`  ${name}`));
        for (const figure of figures) assert.ok(line.includes(figure), `${figure} in ${line}`);
      }
    }));

    it("sorts by both, and the address keeps that", async () => {
      const order = async (page) => (await names(page)).map((name) => name.slice(0, 4));
      let address;
      await on("waiting", {}, async (page) => {
        await page.locator("#table th button", { hasText: "Waiting" }).click();
        assert.deepEqual(await order(page), ["main", "read", "sum("]);
        await page.locator("#table th button", { hasText: "Hooks" }).click();
        assert.deepEqual(await order(page), ["sum(", "main", "read"]);
        await page.locator("#table th button", { hasText: "Hooks" }).click();
        address = await hash(page);
      });
      await on("waiting", { hash: address }, async (page) => {
        assert.deepEqual(await order(page), ["read", "main", "sum("]);
      });
    });

    it("has all waiting and hooks of threads", () => on("waiting", {}, async (page) => {
      await page.locator("#tab-threads").click();
      const expected = ["CPU time", "Waiting", "Hooks", "Waited for room"];
      assert.deepEqual((await heads(page, "#threads")).slice(5), expected);
      const threads = await page.locator("#threads tbody tr").evaluateAll(
        (list) => list.map((tr) => [...tr.cells].slice(5).map((td) => td.innerText)));
      assert.deepEqual(threads, [
        ["1.060 s", "2.530 s", "60.00 ms", "3.000 ms"], ["251.0 ms", "4.000 s", "1.000 ms", "0 ns"],
      ]);
    }));

    it("says what a frame waited, and of its hooks", () => on("waiting", {}, async (page) => {
      const says = async (share, row) => (await tip(page, await across(page, share), row))
        .split("\n").filter((line) => line.trim()).join(" ").replace(/\s+/g, " ");
      const called = await says(0.8, 2);
      assert.match(called, /^sum\(.* Self 300\.0 ms .*Waiting 30\.00 ms Hooks 40\.00 ms Calls/);
      assert.doesNotMatch(await says(0.3, 2), /Hooks/);
      await page.locator("#view button", { hasText: "Bottom-up" }).click();
      assert.match(await says(0.7, 1), /^sum\(.* Waiting 30\.00 ms Hooks 60\.00 ms/);
      // Of the call that main made, without the one within it.
      assert.match(await says(0.7, 2), /^main .* Waiting 10\.00 ms Hooks 40\.00 ms/);
      await page.locator("#table tbody tr").nth(1).click();
      const chosen = await page.locator("#neighbours").innerText();
      assert.match(chosen, /self 400\.0 ms \(32\.0 %\), waiting 30\.00 ms, hooks 60\.00 ms/);
    }));

    it("has samples in the head, and no clock's period", () => on("waiting", {}, async (page) => {
      const facts = await page.locator("#facts").innerText();
      assert.match(facts, /46 calls and returns\s+1,250 samples\s+clock tick$/);
    }));

    it("has none of this where a clock tells times", () => on("small", {}, async (page) => {
      const facts = await page.locator("#facts").innerText();
      assert.match(facts, /46 calls and returns\s+clock tick, 98\.40 µs apart$/);
      await page.locator("#tab-threads").click();
      assert.deepEqual((await heads(page, "#threads")).slice(5), ["CPU time", "Waited for room"]);
      assert.doesNotMatch(await tip(page, await across(page, 0.3), 2), /Waiting|Hooks/);
    }));
  });

  it("gives callers and callees of a function", () => on("small", {}, async (page) => {
    await page.locator("#table tbody tr").nth(1).click();
    const text = await page.locator("#neighbours").innerText();
    assert.match(text, /Called by\s+main\s+4 ×\s+400\.0 ms\s+sum\(int const\*, int\)\s+2 ×\s+100\.0 ms/);
    assert.match(text, /Calls\s+sum\(int const\*, int\)\s+2 ×\s+100\.0 ms/);
  }));
});

describe("zoom", () => {
  it("follows a click, the crumbs and the reset button", () => on("small", {}, async (page) => {
    await frameAt(page, await across(page, 0.8), 2);
    assert.deepEqual(await crumbs(page), ["all 2 threads", "main", "sum(int const*, int)"]);
    // The frame now fills the width.
    assert.match(await tip(page, await across(page, 0.05), 2), /^sum\(int const\*, int\)\n/);
    await page.locator("#crumbs button").nth(1).click();
    assert.deepEqual(await crumbs(page), ["all 2 threads", "main"]);
    await page.locator("#reset").click();
    assert.deepEqual(await crumbs(page), ["all 2 threads"]);
    assert.equal(await hash(page), "");
  }));

  it("follows the wheel with Ctrl, around the pointer", () => on("small", {}, async (page) => {
    await page.locator("canvas").hover({ position: { x: await across(page, 0.3), y: 50 } });
    await page.keyboard.down("Control");
    for (let i = 0; i < 12; i++) await page.mouse.wheel(0, -60);
    await page.keyboard.up("Control");
    await page.waitForFunction(() => document.querySelectorAll("#crumbs button").length === 3);
    assert.deepEqual(await crumbs(page), ["all 2 threads", "main", "read_all"]);
  }));

  it("works by keyboard alone", () => on("small", {}, async (page) => {
    await page.locator("canvas").focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    assert.deepEqual(await crumbs(page), ["all 2 threads", "main", "sum(int const*, int)"]);
    assert.match(await page.locator("#details").innerText(), /^sum\(int const\*, int\)\s+Total 400\.0 ms/);
    await page.keyboard.press("Backspace");
    assert.deepEqual(await crumbs(page), ["all 2 threads", "main"]);
    await page.keyboard.press("Escape");
    assert.deepEqual(await crumbs(page), ["all 2 threads"]);
  }));
});

describe("search", () => {
  it("finds text in functions and modules and says their share", () => on("small", {}, async (page) => {
    await page.locator("#search").fill("LIBREAD");
    assert.equal(await page.locator("#matched").innerText(), "60.0 %");
    assert.deepEqual(await names(page), ["read_all"]);
    await page.locator("#search").fill("sum");
    assert.equal(await page.locator("#matched").innerText(), "32.0 %");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#matched").innerText(), "");
    assert.equal((await names(page)).length, 3);
  }));

  it("finds regular expressions, and bears broken ones", () => on("small", {}, async (page) => {
    await page.locator("#regex").click();
    await page.locator("#search").fill("^(sum|read)");
    assert.equal(await page.locator("#matched").innerText(), "92.0 %");
    await page.locator("#search").fill("(");
    assert.equal(await page.locator("#search").getAttribute("aria-invalid"), "true");
    assert.equal((await names(page)).length, 3);
  }));

  it("changes the picture", () => on("small", {}, async (page) => {
    const picture = () => page.locator("canvas").evaluate((canvas) => canvas.toDataURL());
    const before = await picture();
    await page.locator("#search").fill("sum");
    await page.waitForTimeout(100);
    assert.notEqual(await picture(), before);
  }));

  it("starts with the slash key", () => on("small", {}, async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("main");
    assert.deepEqual(await names(page), ["main"]);
  }));
});

describe("threads, views, table", () => {
  it("shows one thread alone", () => on("small", {}, async (page) => {
    await page.locator("#thread").selectOption({ label: "reader (72)" });
    assert.deepEqual(await rows(page), [
      ["read_all", "libread.so", "250.0 ms 100.0 %", "250.0 ms 100.0 %", "5", "50.00 ms"],
      ["main", "small", "0 ns 0 %", "250.0 ms 100.0 %", "1", "250.0 ms"],
    ]);
    assert.equal(await hash(page), "#thread=1");
  }));

  it("turns call paths round", () => on("small", {}, async (page) => {
    await page.locator("#view button", { hasText: "Bottom-up" }).click();
    // Functions by their own time: read_all 60 %, sum 32 %, main 8 %; sum's callers are
    // main (300 ms) and sum (100 ms).
    assert.match(await tip(page, await across(page, 0.3), 1), /^read_all\n[\s\S]*Time\s+750\.0 ms/);
    assert.match(await tip(page, await across(page, 0.7), 1), /^sum\(int const\*, int\)\n[\s\S]*Time\s+400\.0 ms/);
    assert.match(await tip(page, await across(page, 0.7), 2), /^main\n[\s\S]*Time\s+300\.0 ms/);
    assert.match(await tip(page, await across(page, 0.88), 2), /^sum\(int const\*, int\)\n[\s\S]*Time\s+100\.0 ms/);
    assert.match(await tip(page, await across(page, 0.88), 3), /^main\n[\s\S]*Time\s+100\.0 ms/);
    await page.keyboard.press("i");
    assert.match(await tip(page, await across(page, 0.3), 1), /^main\n/);
  }));

  it("grows up or down", () => on("small", {}, async (page) => {
    await page.locator("#grow button", { hasText: "Flame" }).click();
    const { height } = await page.locator("canvas").boundingBox();
    await page.locator("canvas").hover({ position: { x: 40, y: height - 50 } });
    assert.match(await page.locator("#tip").innerText(), /^read_all\n/);
    assert.equal(await hash(page), "#grow=up");
  }));

  it("sorts by every column, both ways", () => on("small", {}, async (page) => {
    const sorted = async (label) => {
      await page.locator("#table th button", { hasText: label }).click();
      return (await names(page)).map((name) => name.slice(0, 4));
    };
    assert.deepEqual(await sorted("Total"), ["main", "read", "sum("]);
    assert.deepEqual(await sorted("Total"), ["sum(", "read", "main"]);
    assert.equal(await page.locator("#table th[aria-sort]").getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await sorted("Calls"), ["read", "sum(", "main"]);
    assert.deepEqual(await sorted("Function"), ["main", "read", "sum("]);
    assert.deepEqual(await sorted("Per call"), ["main", "sum(", "read"]);
    assert.deepEqual(await sorted("Module"), ["read", "main", "sum("]);
  }));

  it("lists threads and what is known of the recording", () => on("small", {}, async (page) => {
    await page.locator("#tab-threads").click();
    assert.match(await page.locator("#threads").innerText(), /reader \(72\)\s+4100/);
    await page.keyboard.press("ArrowRight");
    assert.match(await page.locator("#recording").innerText(), /Ended\s+with exit status 0/);
    assert.equal(await page.locator("#functions").isVisible(), false);
  }));
});

describe("address", () => {
  it("keeps everything that was chosen", async () => {
    let address;
    await on("small", {}, async (page) => {
      await page.locator("#thread").selectOption({ label: "small (71)" });
      await page.locator("#grow button", { hasText: "Icicle" }).click();
      await page.locator("#colour button", { hasText: "Function" }).click();
      await frameAt(page, await across(page, 0.2), 2);
      await page.locator("#search").fill("a b&c=#");
      await page.locator("#table th button", { hasText: "Total" }).click();
      address = await hash(page);
    });
    await on("small", { hash: address }, async (page) => {
      assert.equal(await page.locator("#thread").inputValue(), "0");
      assert.equal(await page.locator("#search").inputValue(), "a b&c=#");
      assert.deepEqual(await crumbs(page), ["small (71)", "main", "read_all"]);
      assert.match(await page.locator("#table th[aria-sort]").innerText(), /Total/);
      assert.equal(await page.locator("#colour [aria-pressed=true]").innerText(), "Function");
    });
  });

  it("bears nonsense", () => on("small", { hash: "#thread=99&view=x&zoom=7.-1.a.99999999999&sort=%00&q=%3Cimg&regex=1" }, async (page) => {
    assert.equal(await page.locator("#thread").inputValue(), "all");
    assert.deepEqual(await crumbs(page), ["all 2 threads"]);
  }));
});

describe("copy", () => {
  it("copies the selected function's name", () => on("small", { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    await frameAt(page, await across(page, 0.8), 2);
    await page.locator("#copy").click();
    await page.locator("#copy", { hasText: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "sum(int const*, int)");
  }));
});

describe("hostile names", () => {
  it("run nothing and stay text", () => on("hostile", {}, async (page) => {
    await page.locator("#view button", { hasText: "Bottom-up" }).click();
    for (const row of await page.locator("#table tbody tr").all()) await row.click();
    await page.locator("#tab-threads").click();
    await page.locator("#tab-recording").click();
    await page.locator("canvas").hover({ position: { x: 60, y: 30 } });
    assert.equal(await page.evaluate(() => window.broken), undefined);
    assert.equal(await page.locator("script").count(), 2);
    assert.equal(await page.locator("img").count(), 0);
    assert.ok((await names(page)).every((name) => !name.includes("\u202e")));
    assert.ok((await page.locator("#thread option").allInnerTexts()).some((text) => text.includes("</option><script>")));
    assert.match(await page.locator("#findings").innerText(), /<\/p><script>window\.broken=8<\/script>/);
    assert.equal(await page.title(), "script> </title> – teeperf");
  }));

  it("cannot reach a network even from a script", async () => {
    const { page, close } = await open(files.hostile);
    const refused = await page.evaluate(() => new Promise((done) => {
      addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
      const image = new Image();
      image.src = "http://127.0.0.1:9/";
    }));
    assert.equal(refused, "img-src");
    await close();
  });
});

describe("sizes", () => {
  it("has something to say of an empty profile", () => on("empty", {}, async (page) => {
    assert.match(await page.locator("#findings").innerText(), /No call was recorded\.[\s\S]*teeperf cc/);
    assert.equal(await page.locator("#empty").isVisible(), true);
    assert.equal(await page.locator("canvas").isVisible(), false);
    for (const key of ["i", "Escape", "c"]) await page.keyboard.press(key);
  }));

  it("draws a single frame", () => on("single", {}, async (page) => {
    assert.match(await tip(page, 200, 1), /^main\n/);
    assert.equal(await page.locator("#thread").isDisabled(), true);
  }));

  it("scrolls through 2,000 frames", () => on("deep", {}, async (page) => {
    const scroller = page.locator(".flame-scroll");
    const high = await scroller.evaluate((element) => element.scrollHeight);
    assert.equal(high, 2002 * 20);
    await scroller.evaluate((element) => { element.scrollTop = element.scrollHeight; });
    await page.waitForTimeout(100);
    const { height } = await page.locator("canvas").boundingBox();
    await page.locator("canvas").hover({ position: { x: 100, y: height - 10 } });
    assert.match(await page.locator("#tip").innerText(), /level_1999/);
    // A canvas as high as the content would be beyond what browsers allow.
    assert.ok(height < 900);
  }));

  it("opens a million call paths, and zooms and searches in them", () => on("million", {}, async (page) => {
    assert.match(await page.locator("#details").innerText(), /1,000,000 call paths/);
    await frameAt(page, 30, 1);
    assert.equal((await crumbs(page)).length, 2);
    await page.locator("#search").fill("stage_1:");
    await page.locator("#matched", { hasText: "%" }).waitFor();
    await page.locator("#view button", { hasText: "Bottom-up" }).click();
    assert.ok((await rows(page)).length > 0);
  }));

  for (const [width, height] of [[360, 640], [1280, 900], [2560, 1440]]) {
    it(`has no sideways scrolling in ${width} by ${height}`, () => on("demo", { viewport: { width, height } }, async (page) => {
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      assert.equal(await page.locator("canvas").evaluate((canvas) => canvas.clientWidth > innerWidth * 0.9), true);
    }));
  }
});

describe("looks", () => {
  const ground = (page) => page.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
  const corner = (page) => page.locator("canvas").evaluate((canvas) => [...canvas.getContext("2d").getImageData(canvas.width - 2, canvas.height - 2, 1, 1).data]);

  it("follows the system to dark and back", () => on("small", { colorScheme: "dark" }, async (page) => {
    assert.equal(await ground(page), "rgb(18, 19, 23)");
    assert.deepEqual(await corner(page), [26, 28, 33, 255]);
    await page.emulateMedia({ colorScheme: "light" });
    assert.equal(await ground(page), "rgb(246, 245, 243)");
    // The picture is drawn again when the page comes to it.
    await page.waitForFunction(() => {
      const canvas = document.querySelector("canvas");
      return canvas.getContext("2d").getImageData(canvas.width - 2, canvas.height - 2, 1, 1).data[0] !== 26;
    });
    assert.deepEqual(await corner(page), [255, 255, 255, 255]);
  }));

  it("prints on white, without controls", () => on("small", { colorScheme: "dark" }, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator(".tools:visible").count(), 0);
    assert.equal(await page.locator("#table").isVisible(), true);
    assert.equal(await ground(page), "rgb(255, 255, 255)");
    assert.deepEqual(await corner(page), [255, 255, 255, 255]);
  }));
});
