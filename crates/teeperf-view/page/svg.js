
// Zoom and search for the static picture. Works on what is drawn: frames that were too
// thin to be drawn stay away at any zoom.
(function () {
  "use strict";
  const svg = document.documentElement;
  const group = document.getElementById("frames");
  const details = document.getElementById("details");
  const matched = document.getElementById("matched");
  const margin = 10, character = 7.25;
  const full = svg.viewBox.baseVal.width - 2 * margin;
  const frames = Array.from(group.children, (g) => {
    const [title, rect, text] = g.children;
    const said = title.textContent;
    const at = said.indexOf("\n");
    return {
      g, rect, text, name: said.slice(0, at), said: said.slice(at + 1),
      x: +rect.getAttribute("x") - margin, width: +rect.getAttribute("width"), y: +rect.getAttribute("y"),
    };
  });
  const byElement = new Map(frames.map((frame) => [frame.g, frame]));
  const up = svg.dataset.grows === "up";

  function zoom(to) {
    const scale = full / to.width;
    for (const frame of frames) {
      const callee = up ? frame.y <= to.y : frame.y >= to.y;
      // Half a hundredth of a pixel is what rounding in the file may cost.
      const within = frame.x >= to.x - 0.006 && frame.x + frame.width <= to.x + to.width + 0.006;
      const around = frame.x <= to.x + 0.006 && frame.x + frame.width >= to.x + to.width - 0.006;
      const above = !callee && around;
      frame.g.setAttribute("class", (frame.hit ? "hit " : "") + (above ? "above" : callee && within ? "" : "out"));
      const x = above ? 0 : (frame.x - to.x) * scale;
      const width = above ? full : frame.width * scale;
      frame.rect.setAttribute("x", margin + x);
      frame.rect.setAttribute("width", Math.max(0, width));
      frame.text.setAttribute("x", margin + x + 3);
      const room = Math.floor((width - 6) / character);
      frame.text.textContent = room < 3 ? "" : frame.name.length <= room ? frame.name : frame.name.slice(0, room - 1) + "…";
    }
  }

  function search(wanted) {
    let test = null;
    if (wanted) {
      try {
        const pattern = new RegExp(wanted, "i");
        test = (name) => pattern.test(name);
      } catch {
        test = (name) => name.toLowerCase().includes(wanted.toLowerCase());
      }
    }
    for (const frame of frames) {
      frame.hit = test !== null && test(frame.name);
      frame.g.classList.toggle("hit", frame.hit);
    }
    // The width that matches cover together, so that recursion is not counted twice.
    let sum = 0, end = 0;
    for (const { x, width } of frames.filter((frame) => frame.hit).sort((a, b) => a.x - b.x || b.width - a.width)) {
      sum += Math.max(0, x + width - Math.max(x, end));
      end = Math.max(end, x + width);
    }
    group.setAttribute("class", test ? "searching" : "");
    matched.textContent = test ? "matched " + (100 * sum / full).toFixed(1) + " %" : " ";
  }

  function ask() {
    const wanted = prompt("Search for functions (text or regular expression)", "");
    if (wanted !== null) search(wanted);
  }

  group.addEventListener("click", (event) => {
    const frame = byElement.get(event.target.closest("g"));
    if (frame) zoom(frame);
  });
  group.addEventListener("mouseover", (event) => {
    const frame = byElement.get(event.target.closest("g"));
    details.textContent = frame ? frame.name + ": " + frame.said : " ";
  });
  group.addEventListener("mouseleave", () => { details.textContent = " "; });
  const reset = () => zoom(frames[0]);
  for (const [id, act] of [["reset", reset], ["search", ask]]) {
    const button = document.getElementById(id);
    button.addEventListener("click", act);
    button.addEventListener("keydown", (event) => { if (event.key === "Enter") act(); });
  }
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey && event.key === "f") || event.key === "/") { event.preventDefault(); ask(); }
    if (event.key === "Escape") { search(""); reset(); }
  });
  if (frames.length) svg.classList.add("live");
})();
