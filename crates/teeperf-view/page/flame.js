// The flame graph on a canvas: only rows in sight are drawn, and only frames that have
// half a pixel. `x0` and `x1` are the time in sight; `focus` the frame zoomed to.

const ROW = 20;
const THINNEST = 0.5;
const FONT = '12px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';

class Flame {
  // `on`: hover(node, event), select(node), focus(node).
  constructor(root, on) {
    this.on = on;
    this.scroller = root.querySelector(".flame-scroll");
    this.spacer = root.querySelector(".flame-space");
    this.canvas = root.querySelector("canvas");
    this.outline = root.querySelector(".flame-outline");
    this.pen = this.canvas.getContext("2d");
    this.pen.font = FONT;
    this.character = this.pen.measureText("MMMMMMMMMM").width / 10;
    this.grows = "down";
    this.byModule = true;
    this.differences = null;
    this.matches = null;
    this.theme = { dark: false, paper: "#fff", rest: "#ddd", ink: "#1b1b1b", faint: "#888", accent: "#c2410c" };
    this.rows = 1;
    this.drawn = [];
    this.pending = 0;
    this.hovered = -1;
    new ResizeObserver(() => this.resized()).observe(this.scroller);
    this.scroller.addEventListener("scroll", () => { this.hover(-1); this.redraw(); });
    this.listen();
  }

  show(graph, path) {
    this.graph = graph;
    this.selected = -1;
    this.hover(-1);
    this.focus = nodeAt(graph, path);
    [this.x0, this.x1] = this.extent(this.focus);
    this.fit();
    this.scrollToRoot();
    this.reveal(this.focus);
    this.redraw();
  }

  extent(node) {
    const { graph } = this;
    if (!graph.size || !(graph.total[node] > 0)) return [0, Math.max(1, graph.whole || 0)];
    return [graph.start[node], graph.start[node] + graph.total[node]];
  }

  zoomTo(node) {
    this.focus = node;
    this.animate(...this.extent(node));
    this.on.focus(node);
  }

  // `factor` below 1 zooms in; `at` is where on the canvas, in pixels.
  zoomBy(factor, at) {
    const whole = this.graph.whole, span = this.x1 - this.x0;
    const wanted = Math.min(whole, Math.max(span * factor, whole * 1e-9));
    const fixed = this.x0 + span * (at / this.width);
    this.moveTo(fixed - wanted * (at / this.width), wanted);
  }

  moveTo(start, span) {
    const whole = this.graph.whole;
    this.animation = null;
    this.x0 = Math.min(Math.max(0, start), whole - span);
    this.x1 = this.x0 + span;
    const focus = this.smallestAround(this.x0, this.x1);
    if (focus !== this.focus) {
      this.focus = focus;
      this.on.focus(focus);
    }
    this.redraw();
  }

  // Deepest frame of those that fill the view alone: where a zoom by hand has arrived.
  smallestAround(x0, x1) {
    const { graph } = this;
    const slack = (x1 - x0) * 0.02;
    let node = 0;
    while (x1 - x0 < graph.total[node] * 0.999) {
      graph.expand(node);
      let inside = -1;
      for (let i = 0; i < graph.count[node] && inside < 0; i++) {
        const child = graph.first[node] + i;
        if (graph.start[child] <= x0 + slack && graph.start[child] + graph.total[child] >= x1 - slack) inside = child;
        if (graph.start[child] > x0 + slack) break;
      }
      if (inside < 0) break;
      node = inside;
    }
    return node;
  }

  animate(x0, x1) {
    const from = [this.x0, this.x1], begun = performance.now();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      [this.x0, this.x1] = [x0, x1];
      this.settle();
      return;
    }
    const step = (now) => {
      if (this.animation !== step) return;
      const t = Math.min(1, (now - begun) / 180);
      const eased = 1 - (1 - t) ** 3;
      this.x0 = from[0] + (x0 - from[0]) * eased;
      this.x1 = from[1] + (x1 - from[1]) * eased;
      this.draw();
      if (t < 1) return void requestAnimationFrame(step);
      [this.x0, this.x1] = [x0, x1];
      this.animation = null;
      this.settle();
    };
    this.animation = step;
    requestAnimationFrame(step);
  }

  settle() {
    this.fit();
    this.reveal(this.focus);
    this.redraw();
  }

  resized() {
    const ratio = devicePixelRatio || 1;
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.canvas.style.width = this.width + "px";
    this.canvas.style.height = this.height + "px";
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
  }

  // Makes room for all rows that the present zoom has, and stays at the same rows.
  fit() {
    if (!this.graph || !this.width) return;
    this.visit(() => {}, Infinity);
    const fromRoot = this.fromRoot;
    this.spacer.style.height = Math.max(this.rows * ROW, 1) + "px";
    if (this.grows === "up") this.scroller.scrollTop = this.scroller.scrollHeight - this.scroller.clientHeight - fromRoot;
  }

  // Pixels between the root's edge of the content and that of the view.
  get fromRoot() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return this.grows === "up" ? scrollHeight - clientHeight - scrollTop : scrollTop;
  }

  scrollToRoot() {
    this.scroller.scrollTop = this.grows === "up" ? this.scroller.scrollHeight : 0;
  }

  reveal(node) {
    if (!this.graph.size) return;
    const near = this.graph.depth[node] * ROW, from = this.fromRoot;
    if (near >= from && near + ROW <= from + this.scroller.clientHeight) return;
    const wanted = Math.max(0, near - 2 * ROW);
    const { scrollHeight, clientHeight } = this.scroller;
    this.scroller.scrollTop = this.grows === "up" ? scrollHeight - clientHeight - wanted : wanted;
  }

  redraw() {
    if (!this.pending) this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
  }

  top(depth) {
    const from = depth * ROW - this.fromRoot;
    return this.grows === "up" ? this.height - ROW - from : from;
  }

  // Calls put(node, x, width, depth, thin) for each frame in sight down to `last` row.
  visit(put, last) {
    const { graph, width, x0, x1 } = this;
    this.rows = 1;
    if (!graph.size || !(graph.whole > 0)) return;
    const scale = width / (x1 - x0);
    const stack = [0];
    while (stack.length) {
      const node = stack.pop(), depth = graph.depth[node];
      this.rows = Math.max(this.rows, depth + 1);
      put(node, (graph.start[node] - x0) * scale, graph.total[node] * scale, depth, false);
      if (depth >= last) continue;
      graph.expand(node);
      const first = graph.first[node], end = first + graph.count[node];
      // The first child that reaches into sight.
      let low = first, high = end;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (graph.start[middle] + graph.total[middle] <= x0) low = middle + 1;
        else high = middle;
      }
      for (let child = low; child < end && graph.start[child] < x1; child++) {
        if (graph.total[child] * scale >= THINNEST) {
          stack.push(child);
          continue;
        }
        // Narrower ones follow: the rest is one block.
        const until = graph.start[end - 1] + graph.total[end - 1];
        const wide = (until - graph.start[child]) * scale;
        if (wide >= THINNEST) {
          this.rows = Math.max(this.rows, depth + 2);
          put(child, (graph.start[child] - x0) * scale, wide, depth + 1, true);
        }
        break;
      }
    }
  }

  draw() {
    const { pen, graph, width, height, theme } = this;
    if (!graph || !width) return;
    pen.fillStyle = theme.paper;
    pen.fillRect(0, 0, width, height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    this.drawn = [];
    const firstRow = Math.floor(this.fromRoot / ROW), lastRow = firstRow + Math.ceil(height / ROW) + 1;
    this.visit((node, x, wide, depth, thin) => {
      if (depth < firstRow || depth > lastRow) return;
      const left = Math.max(0, x), right = Math.min(width, x + wide);
      (this.drawn[depth] ||= []).push({ node, left, right, thin });
      this.frame(node, left, right - left, this.top(depth), thin);
    }, lastRow);
    if (this.selected >= 0) this.mark(this.selected, pen);
  }

  frame(node, x, wide, y, thin) {
    const { pen, graph, theme } = this;
    const gap = wide > 3 ? 1 : wide > 1 ? 0.25 : 0;
    const hit = this.matches && node > 0 && !thin && this.matches[graph.fn[node]];
    const faded = this.matches && !hit;
    pen.globalAlpha = faded ? 0.22 : 1;
    pen.fillStyle = thin || node === 0 ? theme.rest
      : this.differences ? this.differences.colour(node, theme.dark ? 0.9 : 1) : colourOf(graph.fn[node], this.byModule, theme.dark ? 0.9 : 1);
    pen.fillRect(x, y, wide - gap, ROW - 1);
    pen.globalAlpha = 1;
    const room = Math.floor((wide - 8) / this.character);
    if (thin || room < 2) return;
    const name = node === 0 ? this.rootName : functions[graph.fn[node]].name;
    pen.fillStyle = faded ? theme.faint : node === 0 ? theme.restInk : theme.ink;
    pen.fillText(shorten(name, room), x + 4, y + (ROW - 1) / 2 + 0.5);
  }

  // A frame's border, drawn over the others.
  mark(node, pen) {
    const place = this.placeOf(node);
    if (!place) return;
    pen.strokeStyle = this.theme.accent;
    pen.lineWidth = 2;
    pen.strokeRect(place.left + 1, this.top(this.graph.depth[node]) + 1, Math.max(1, place.right - place.left - 3), ROW - 3);
  }

  placeOf(node) {
    return (this.drawn[this.graph.depth[node]] || []).find((place) => place.node === node && !place.thin);
  }

  at(x, y) {
    const from = this.fromRoot;
    const depth = Math.floor((this.grows === "up" ? this.height - y + from : y + from) / ROW);
    return (this.drawn[depth] || []).find((place) => x >= place.left && x < place.right) || null;
  }

  hover(node, place) {
    this.hovered = node;
    this.outline.hidden = node < 0;
    if (node < 0) return;
    const { style } = this.outline;
    style.left = place.left + "px";
    style.width = Math.max(2, place.right - place.left) + "px";
    style.top = this.canvas.offsetTop + this.top(this.graph.depth[node]) + "px";
    style.height = ROW - 1 + "px";
  }

  select(node) {
    this.selected = node;
    if (node >= 0) this.reveal(node);
    this.redraw();
    this.on.select(node);
  }

  listen() {
    const { canvas } = this;
    const local = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button === 0) drag = { x: event.clientX, y: event.clientY, x0: this.x0, top: this.scroller.scrollTop, moved: false };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag && (drag.moved || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4)) {
        if (!drag.moved && event.pointerId) canvas.setPointerCapture(event.pointerId);
        drag.moved = true;
        this.hover(-1);
        this.on.hover(null, event);
        const span = this.x1 - this.x0;
        this.moveTo(drag.x0 - (event.clientX - drag.x) * span / this.width, span);
        this.scroller.scrollTop = drag.top - (event.clientY - drag.y);
        return;
      }
      const place = this.at(...local(event));
      this.hover(place ? place.node : -1, place);
      this.on.hover(place, event);
    });
    canvas.addEventListener("pointerleave", (event) => { this.hover(-1); this.on.hover(null, event); });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerup", (event) => {
      const moved = drag && drag.moved;
      drag = null;
      if (moved || event.button !== 0) return;
      const place = this.at(...local(event));
      if (!place) return;
      this.select(place.thin ? -1 : place.node);
      if (place.thin) this.zoomBy(0.1, local(event)[0]);
      else this.zoomTo(place.node);
    });
    canvas.addEventListener("wheel", (event) => {
      if (!this.graph.size) return;
      const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoomBy(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), local(event)[0]);
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        const span = this.x1 - this.x0;
        this.moveTo(this.x0 + across * span / this.width, span);
      }
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const { graph } = this;
    if (!graph.size || event.ctrlKey || event.metaKey || event.altKey) return;
    const here = this.selected >= 0 ? this.selected : this.focus;
    const sibling = (step) => {
      const parent = graph.parent[here], at = here + step;
      return here > 0 && at >= graph.first[parent] && at < graph.first[parent] + graph.count[parent] ? at : here;
    };
    const callee = () => {
      graph.expand(here);
      return graph.count[here] > 0 ? graph.first[here] : here;
    };
    const away = this.grows === "up" ? "ArrowUp" : "ArrowDown";
    const back = this.grows === "up" ? "ArrowDown" : "ArrowUp";
    const acts = {
      ArrowLeft: () => this.go(sibling(-1)),
      ArrowRight: () => this.go(sibling(1)),
      [away]: () => this.go(callee()),
      [back]: () => this.go(graph.parent[here]),
      Home: () => this.go(0),
      Enter: () => this.zoomTo(here),
      Backspace: () => this.zoomTo(graph.parent[this.focus]),
      "+": () => this.zoomBy(0.7, this.width / 2),
      "=": () => this.zoomBy(0.7, this.width / 2),
      "-": () => this.zoomBy(1 / 0.7, this.width / 2),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  // Selects by keyboard; zooms out as far as it takes to see the frame.
  go(node) {
    const [start, end] = this.extent(node);
    const wide = (end - start) / (this.x1 - this.x0) * this.width;
    if (node !== 0 && (wide < 2 || end <= this.x0 || start >= this.x1)) this.zoomTo(this.graph.parent[node]);
    this.select(node);
  }
}

// A function's name without parameters, template arguments and return type; as it is where
// brackets do not match, or are part of the name.
function bareName(name) {
  if (name.includes("operator") || name.startsWith("[")) return name;
  let bare = "", depth = 0;
  for (const c of name.replaceAll("(anonymous namespace)::", "")) {
    if (c === "(" || c === "<") depth++;
    else if (c === ")" || c === ">") depth--;
    else if (depth === 0) bare += c;
    if (depth < 0) return name;
  }
  bare = bare.replace(/ const$/, "").trim().split(" ").pop();
  return depth === 0 && bare ? bare.replace(/^::/, "") : name;
}

// A name in so many characters: what is left out first says least about the function.
function shorten(name, room) {
  if (name.length <= room) return name;
  let bare = bareName(name);
  for (let at; bare.length > room && (at = bare.indexOf("::")) >= 0;) bare = bare.slice(at + 2);
  return bare.length <= room ? bare : bare.slice(0, room - 1) + "…";
}
