// Opens the example pages in Debian's Chromium, with every request and error noted.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = mkdtempSync(path.join(tmpdir(), "teeperf-pages-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});

// Of the whole workspace, as all tests are built: cargo would build much of one package anew.
execFileSync("cargo", ["build", "--quiet", "--workspace", "--example", "demo_page"], {
  cwd: root, stdio: ["ignore", "inherit", "inherit"],
});
const target = path.resolve(root, process.env.CARGO_TARGET_DIR || "target");
const demo = path.join(target, "debug", "examples", "demo_page");

// Draws an example; the name's end is the form.
export function draw(kind, form) {
  const file = path.join(folder, `${kind}.${form}`);
  execFileSync(demo, [kind, file], { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  return file;
}

// A page on a file, in a window of its own: `seen` has what it asked for and complained of.
export async function open(file, { hash = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const seen = { requests: [], errors: [] };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") seen.errors.push(message.text()); });
  page.on("dialog", (dialog) => dialog.accept("read"));
  const address = "file://" + file + hash;
  await page.goto(address);
  return { page, seen, address, close: () => context.close() };
}

export const closeBrowser = () => browser.close();
