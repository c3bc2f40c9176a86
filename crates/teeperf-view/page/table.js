// The table of functions, and who calls whom around the chosen one.

const FIRST_ROWS = 200;

const COLUMNS = [
  { key: "name", label: "Function", className: "text name", up: true, of: (row) => functions[row.fn].name.toLowerCase() },
  { key: "module", label: "Module", className: "text module", up: true, of: (row) => functions[row.fn].module.toLowerCase() },
  { key: "self", label: "Self", of: (row) => row.self },
  { key: "total", label: "Total", of: (row) => row.total },
  { key: "calls", label: data.isSampled ? "Samples" : "Calls", of: (row) => row.calls },
  { key: "per-call", label: "Per call", className: "per-call", of: (row) => row.total / row.calls },
];

// What stands beside CPU time where samples tell that, as in the text report.
const BESIDE = [
  {
    key: "waiting", label: "Waiting", of: (row) => row.waiting,
    title: "How long threads had no processor, in the function and what it called",
  },
  {
    key: "hooks", label: "Hooks", of: (row) => row.hooks,
    title: "CPU time of the function's own hooks; no other figure has it",
  },
].filter(({ key }) => data.threads.some((thread) => thread[key]?.paths));
COLUMNS.splice(COLUMNS.findIndex(({ key }) => key === "calls"), 0, ...BESIDE);

// Few samples tell little, and calls without room may be missing; wide when that is more than 30 %
// of the figure.
const unsure = (value, less, more) => less + more > 0.3 * value;
// Whether so much of a total may be missing that the mean of a call is not known.
const lacksMuch = (value, less, more, lack) => lack > 0 && unsure(value, less, more);
const between = (value, less, more) => `between ${write.time(value - less)} and ${write.time(value + more)}`;

if (data.isSampled) COLUMNS.splice(COLUMNS.findIndex(({ key }) => key === "per-call"), 1);

if (data.compared) {
  const change = { key: "change", label: "Change of self", className: "change", of: (row) => Math.abs(row.self - row.other) };
  if (!data.isSampled) COLUMNS.splice(COLUMNS.findIndex(({ key }) => key === "per-call"), 1);
  COLUMNS.splice(COLUMNS.findIndex(({ key }) => key === "self"), 0, change);
}

class Table {
  // `on`: choose(fn), sort(key).
  constructor(on) {
    this.on = on;
    this.table = document.getElementById("table");
    this.more = document.getElementById("more");
    this.side = document.getElementById("neighbours");
    this.key = compared ? "change" : "self";
    this.lane = 0;
    this.upwards = false;
    this.chosen = -1;
    this.shown = FIRST_ROWS;
  }

  show(graph) {
    this.graph = graph;
    this.rows = graph.rows();
    this.draw();
    this.choose(this.chosen);
  }

  // Sorted by a column, turned round when it is the one already.
  sort(key, upwards) {
    const column = COLUMNS.find((column) => column.key === key);
    if (!column) return;
    this.upwards = upwards ?? (this.key === key ? !this.upwards : Boolean(column.up));
    this.key = key;
    this.draw();
  }

  filter(matches) {
    this.matches = matches;
    this.shown = FIRST_ROWS;
    if (this.rows) this.draw();
  }

  draw() {
    const column = COLUMNS.find((column) => column.key === this.key);
    const rows = this.matches ? this.rows.filter((row) => this.matches[row.fn]) : this.rows.slice();
    const values = new Map(rows.map((row) => [row, column.of(row)]));
    rows.sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (this.upwards ? 1 : -1) || a.fn - b.fn;
    });
    const heads = COLUMNS.map(({ key, label, className, title }) => element("th", {
      scope: "col", class: className, title,
      "aria-sort": key !== this.key ? null : this.upwards ? "ascending" : "descending",
    }, element("button", { type: "button", "data-sort": key, onclick: () => { this.sort(key); this.on.sort(); } }, label)));
    // The focus stays on the heading that was pressed.
    const focused = document.activeElement?.dataset?.sort;
    this.table.tHead.replaceChildren(element("tr", null, ...heads));
    if (focused) this.table.tHead.querySelector(`[data-sort="${focused}"]`)?.focus();
    this.table.tBodies[0].replaceChildren(...rows.slice(0, this.shown).map((row) => this.row(row)));
    this.more.replaceChildren();
    if (!rows.length) this.more.append(this.matches ? "No function matches the search." : "No function was called here.");
    else if (rows.length > this.shown) {
      this.more.append(`${write.count(this.shown)} of ${write.counted(rows.length, "function")}. `, element("button", {
        type: "button", class: "plain small", onclick: () => { this.shown *= 4; this.draw(); },
      }, "Show more"));
    }
  }

  row(row) {
    const { name, module } = functions[row.fn], whole = this.graph.whole;
    const figure = (value, less, more) => element("td", null,
      element("span", {
        class: unsure(value, less, more) ? "unsure" : null,
        title: unsure(value, less, more) ? "Known no better than to 30 %: " + between(value, less, more) : null,
      }, write.time(value)), " ",
      element("span", { class: "share", style: `--part:${whole > 0 ? Math.min(1, value / whole) : 0}` }, write.percent(value, whole)));
    return element("tr", {
      class: row.fn === this.chosen ? "chosen" : null, "data-fn": row.fn,
      onclick: () => this.on.choose(row.fn),
    },
    element("td", { class: "text name" }, element("button", { type: "button", class: "link", title: name }, name)),
    element("td", { class: "text module", title: module }, module),
    compared ? element("td", { class: "change" }, comparing.words(this.lane, row.self, row.other)) : null,
    figure(row.self, row.less, row.more),
    figure(row.total, row.totalLess, row.totalMore),
    ...BESIDE.map(({ of }) => element("td", null, of(row) > 0 ? write.time(of(row)) : "")),
    element("td", null, write.count(row.calls)),
    compared || data.isSampled ? null : element("td", { class: "per-call" }, write.perCall(row.total, row.calls, lacksMuch(row.total, row.totalLess, row.totalMore, row.totalLack), row.totalMore)));
  }

  choose(fn) {
    this.chosen = fn;
    for (const tr of this.table.tBodies[0].rows) tr.classList.toggle("chosen", Number(tr.dataset.fn) === fn);
    this.side.replaceChildren();
    const row = this.rows.find((row) => row.fn === fn);
    if (!row) {
      if (this.rows.length) this.side.append(element("p", { class: "hint" }, "Choose a function to see who calls it and what it calls."));
      return;
    }
    const { name, module, file, line } = functions[fn], whole = this.graph.whole;
    const { callers, callees } = this.graph.neighbours(fn);
    const beside = BESIDE.filter(({ of }) => of(row) > 0)
      .map(({ label, of }) => `${label.toLowerCase()} ${write.time(of(row))}`);
    this.side.append(
      element("h2", null, name),
      element("p", null, [module, file && file + (line ? ":" + line : "")].filter(Boolean).join(" · ")),
      element("p", null, [write.counted(row.calls, data.isSampled ? "sample" : "call"),
        `total ${write.time(row.total)} (${write.percent(row.total, whole)})`,
        `self ${write.time(row.self)} (${write.percent(row.self, whole)})`, ...beside].join(", ")),
      ...this.list("Called by", callers), ...this.list("Calls", callees));
  }

  list(title, rows) {
    const most = Math.max(...rows.slice(0, 1).map((row) => row.time), 1e-9);
    const line = ({ fn, calls, time }) => element("button", {
      type: "button", class: "row", disabled: fn >= functions.length, title: data.isSampled ? null : write.counted(calls, "call"),
      onclick: () => this.on.choose(fn),
    },
    element("span", { class: "who" }, fn < functions.length ? functions[fn].name : "(the thread's first frame)"),
    data.isSampled ? null : element("span", { class: "figure" }, write.count(calls) + " ×"),
    element("span", { class: "figure share", style: `--part:${time / most}` }, write.time(time)));
    const rest = rows.length > 12 ? element("p", null, `and ${write.count(rows.length - 12)} more`) : null;
    const none = rows.length ? null : element("p", null, "nobody");
    return [element("h3", null, title), ...rows.slice(0, 12).map(line), ...[rest, none].filter(Boolean)];
  }
}
