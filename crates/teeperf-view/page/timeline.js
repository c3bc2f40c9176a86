// The time line: marks and notes of each thread, a line for each of its counters. What a point is says a click on it, or an arrow
// key. Where points lie closer than pixels, one stands for several, and says for how many.

const LANE = 30, COUNTER_LANE = 46, AXIS = 22, GUTTER = 190, NEAR = 4, MOST_TOLD = 12;
const SVG = document.querySelector("svg").namespaceURI;

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

class TimeLine {
  // `section` is what it stands in; `line` what the page was given.
  constructor(section, line, threadName) {
    this.line = line;
    this.section = section;
    this.svg = section.querySelector("svg");
    this.told = section.querySelector(".told");
    this.chosen = null;
    this.lanes = line.lanes.map((lane) => ({ ...lane, name: lane.counter ?? "marks, notes", thread: threadName(lane.pid, lane.tid) }));
    [this.t0, this.t1] = this.whole = [0, Math.max(1, line.end)];
    let top = AXIS;
    for (const lane of this.lanes) {
      Object.assign(lane, { top, height: lane.counter == null ? LANE : COUNTER_LANE });
      const finite = (lane.value ?? []).filter((value) => value != null);
      lane.least = finite.reduce((a, b) => Math.min(a, b), Infinity);
      lane.most = finite.reduce((a, b) => Math.max(a, b), -Infinity);
      top += lane.height;
    }
    this.height = top + 4;
    this.svg.setAttribute("height", this.height);
    section.querySelector(".shown").textContent = this.shown();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(section);
    this.tell();
    this.draw();
  }

  // How much of it is here.
  shown() {
    const { lanes, line } = this;
    const all = lanes.reduce((sum, lane) => sum + lane.all, 0), here = lanes.reduce((sum, lane) => sum + lane.at.length, 0);
    const parts = [here < all ? `${write.count(here)} of ${write.counted(all, "point")} are in this page: of each stretch of time the first, and the least and the most of a counter.` : write.counted(all, "point") + "."];
    if (line.lanesLeftOut) parts.push(`${write.counted(line.leftOut, "point")} of ${write.counted(line.lanesLeftOut, "lane")} with few are left out.`);
    if (parts.length > 1 || here < all) parts.push("teeperf report --time-line has all.");
    return parts.join(" ");
  }

  get width() { return Math.max(80, this.svg.clientWidth - GUTTER - 10); }
  x(at) { return GUTTER + (at - this.t0) / (this.t1 - this.t0) * this.width; }
  y(lane, value) {
    const [low, high] = [lane.top + lane.height - 7, lane.top + 7];
    return lane.most > lane.least ? low + (value - lane.least) / (lane.most - lane.least) * (high - low) : (low + high) / 2;
  }

  draw() {
    const parts = [this.axis()];
    for (const lane of this.lanes) {
      const group = drawn("g", { class: lane.counter == null ? "lane marks" : "lane counter" });
      group.append(drawn("line", { class: "floor", x1: 0, x2: GUTTER + this.width + 10, y1: lane.top + lane.height, y2: lane.top + lane.height }));
      const name = drawn("text", { x: 12, y: lane.top + lane.height / 2 - 1, class: "name" }, shortened(lane.name, 24));
      name.append(drawn("title", {}, lane.name));
      group.append(name, drawn("text", { x: 12, y: lane.top + lane.height / 2 + 11, class: "thread" }, shortened(lane.thread, 28)));
      group.append(...(lane.counter == null ? this.marks(lane) : this.counter(lane)));
      parts.push(group);
    }
    this.svg.replaceChildren(...parts);
  }

  axis() {
    const axis = drawn("g", { class: "axis" });
    const span = this.t1 - this.t0, about = span / Math.max(2, this.width / 110);
    const size = 10 ** Math.floor(Math.log10(about));
    const step = size * [1, 2, 5, 10].find((n) => n * size >= about);
    for (let at = Math.ceil(this.t0 / step) * step; at <= this.t1; at += step) {
      axis.append(drawn("line", { x1: this.x(at), x2: this.x(at), y1: AXIS - 5, y2: this.height }), drawn("text", { x: this.x(at) + 3, y: 13 }, write.time(at)));
    }
    return axis;
  }

  // Numbers of the first point in sight and of the one behind the last.
  inSight(lane) {
    return [firstFrom(lane.at, this.t0), firstFrom(lane.at, this.t1 + 1)];
  }

  marks(lane) {
    const [from, to] = this.inSight(lane), made = [];
    let last = -Infinity;
    for (let i = from; i < to; i++) {
      const x = this.x(lane.at[i]), isChosen = this.isChosen(lane, i);
      if (x - last < 2 && !isChosen) continue;
      last = x;
      const kind = lane.text[i] & 1 ? "note" : "mark";
      const height = lane.height - 12;
      const shape = kind === "note"
        ? drawn("circle", { cx: x, cy: lane.top + lane.height / 2, r: 4 })
        : drawn("rect", { x: x - 1, y: lane.top + 6, width: 2, height });
      shape.setAttribute("class", kind + (isChosen ? " chosen" : ""));
      made.push(shape);
    }
    return made;
  }

  // Between two values that are known the counter is taken to stay as it was.
  counter(lane) {
    const [from, to] = this.inSight(lane), made = [];
    let path = "", column = -1, low = 0, high = 0, before = null;
    const at = (x, y) => { path += `${path && before != null ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`; };
    for (let i = Math.max(0, from - 1); i < to; i++) {
      if (lane.value[i] == null) { before = null; continue; }
      const x = Math.max(GUTTER, this.x(lane.at[i])), y = this.y(lane, lane.value[i]);
      if (before != null && Math.floor(x) === column) {
        // Several in one column of pixels: as high as they reach.
        if (y < low || y > high) at(x, y);
      } else {
        if (before != null) at(x, before);
        at(x, y);
        [column, low, high] = [Math.floor(x), y, y];
      }
      [low, high] = [Math.min(low, y), Math.max(high, y)];
      before = y;
    }
    if (before != null) at(GUTTER + this.width, before);
    if (path) made.push(drawn("path", { d: path, class: "values" }));
    const bound = (value, y) => drawn("text", { x: GUTTER - 6, y, class: "bound" }, number(value));
    if (Number.isFinite(lane.most)) made.push(bound(lane.most, lane.top + 12));
    if (lane.most > lane.least) made.push(bound(lane.least, lane.top + lane.height - 4));
    if (to - from <= this.width / 12) {
      for (let i = from; i < to; i++) {
        if (lane.value[i] != null) made.push(drawn("circle", { cx: this.x(lane.at[i]), cy: this.y(lane, lane.value[i]), r: 2.5, class: "value" }));
      }
    }
    if (this.chosen?.lane === lane) {
      const { first } = this.chosen;
      if (lane.value[first] != null) made.push(drawn("circle", { cx: this.x(lane.at[first]), cy: this.y(lane, lane.value[first]), r: 5, class: "value chosen" }));
    }
    return made;
  }

  isChosen(lane, i) {
    return this.chosen?.lane === lane && i >= this.chosen.first && i < this.chosen.end;
  }

  // Points of a lane near a place.
  near(x, y) {
    const lane = this.lanes.find(({ top, height }) => y >= top && y < top + height);
    if (!lane || x < GUTTER - NEAR) return null;
    const at = (x) => this.t0 + (x - GUTTER) / this.width * (this.t1 - this.t0);
    const first = firstFrom(lane.at, at(x - NEAR)), end = firstFrom(lane.at, at(x + NEAR));
    return first < end ? { lane, first, end } : null;
  }

  choose(points) {
    this.chosen = points;
    this.tell();
    this.draw();
  }

  // The next point of the lane, or the one before; of the first lane where none is chosen.
  step(by) {
    const lane = this.chosen?.lane ?? this.lanes[0];
    const next = this.chosen ? (by > 0 ? this.chosen.end : this.chosen.first - 1) : 0;
    if (next < 0 || next >= lane.at.length) return;
    const at = lane.at[next];
    if (at < this.t0 || at > this.t1) this.moveTo(at - (this.t1 - this.t0) / 2, this.t1 - this.t0);
    this.choose({ lane, first: next, end: next + 1 });
  }

  tell() {
    if (!this.chosen) {
      this.told.replaceChildren(element("span", null, "Click a point to see what it is; the arrow keys go on from there. Ctrl and wheel, + and − zoom, dragging moves, Escape shows everything."));
      return;
    }
    const { lane, first, end } = this.chosen;
    const rows = [];
    for (let i = first; i < Math.min(end, first + MOST_TOLD); i++) {
      const text = lane.counter == null ? this.line.texts[lane.text[i] >> 1] : lane.counter;
      const kind = lane.counter != null ? "counter" : lane.text[i] & 1 ? "note" : "mark";
      const stands = lane.stands?.[i] ?? 1;
      rows.push(element("p", { class: "point" },
        element("b", null, write.time(lane.at[i])), ` ${kind} `, element("span", { class: "name" }, text),
        lane.counter == null ? null : element("b", null, " " + number(lane.value[i])),
        stands > 1 ? ` and ${write.count(stands - 1)} more up to the next` : null));
    }
    if (end - first > MOST_TOLD) rows.push(element("p", { class: "point" }, `… ${write.count(end - first - MOST_TOLD)} more: zoom in to see them apart.`));
    this.told.replaceChildren(element("span", { class: "where" }, lane.thread), ...rows);
  }

  zoomBy(factor, x) {
    const span = this.t1 - this.t0, part = Math.min(1, Math.max(0, (x - GUTTER) / this.width));
    const wanted = Math.min(this.whole[1], Math.max(span * factor, 100));
    this.moveTo(this.t0 + span * part - wanted * part, wanted);
  }

  moveTo(start, span) {
    this.t0 = Math.min(Math.max(0, start), this.whole[1] - span);
    this.t1 = this.t0 + span;
    this.draw();
  }

  reset() {
    [this.t0, this.t1] = this.whole;
    this.choose(null);
  }

  listen() {
    const { svg } = this;
    const place = (event) => { const box = svg.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    svg.addEventListener("wheel", (event) => {
      const [x] = place(event);
      if (event.ctrlKey) this.zoomBy(Math.exp(Math.max(-300, Math.min(300, event.deltaY)) * 0.004), x);
      else if (event.shiftKey) this.moveTo(this.t0 + (event.deltaY || event.deltaX) / this.width * (this.t1 - this.t0), this.t1 - this.t0);
      else return;
      event.preventDefault();
    }, { passive: false });
    let from = null, hasMoved = false;
    svg.addEventListener("pointerdown", (event) => { from = [place(event)[0], this.t0]; hasMoved = false; svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const by = place(event)[0] - from[0];
      hasMoved ||= Math.abs(by) > 3;
      if (hasMoved) this.moveTo(from[1] - by / this.width * (this.t1 - this.t0), this.t1 - this.t0);
    });
    svg.addEventListener("pointerup", (event) => { from = null; if (!hasMoved) this.choose(this.near(...place(event))); });
    svg.addEventListener("pointercancel", () => { from = null; });
    svg.addEventListener("keydown", (event) => {
      const middle = GUTTER + this.width / 2;
      const acts = {
        ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
        "+": () => this.zoomBy(0.5, middle), "-": () => this.zoomBy(2, middle), Escape: () => this.reset(),
      };
      if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      acts[event.key]();
    });
    for (const [name, act] of [["in", () => this.zoomBy(0.5, GUTTER + this.width / 2)], ["out", () => this.zoomBy(2, GUTTER + this.width / 2)], ["all", () => this.reset()]]) {
      this.section.querySelector(`[value="${name}"]`).addEventListener("click", act);
    }
  }
}

// The first of numbers in order that is no less.
function firstFrom(numbers, least) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

function shortened(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

function number(value) {
  return value == null ? "not a number" : Number.isInteger(value) ? write.count(value) : String(Number(value.toPrecision(6)));
}
