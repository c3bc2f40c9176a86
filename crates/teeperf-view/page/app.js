// Puts the page together: what is chosen stands in `state` and in the address after `#`.

const $ = (id) => document.getElementById(id);
// What colours say, by the buttons that stand there; where two sides are compared, what differs.
const colours = compared ? ["self", "total"] : ["module", "function"];
const state = { thread: compared ? String(compared.first) : "all", view: data.view, grow: "down", colour: colours[0], q: "", regex: false, zoom: [] };
const command = data.info.command.join(" ") || "recording";
// Without the folder, which says least and takes most room.
const program = command.slice(data.info.command.length ? data.info.command[0].lastIndexOf("/") + 1 : 0);
const many = data.threads.length > 1;
// CPU time is made of samples, and the period is theirs.
const bySamples = data.info.samples != null;

const graphs = new Map();
function graphOf(thread, view) {
  const key = thread + " " + view;
  if (!graphs.has(key)) {
    // One thread's trees at a time: a page may hold a million call paths.
    for (const old of graphs.keys()) if (!old.startsWith(thread + " ")) graphs.delete(old);
    graphs.set(key, view === "bottom-up" ? new BottomUp(graphOf(thread, "paths"))
      : new TopDown(merged(thread === "all" ? data.threads.map(columnsOf) : [columnsOf(data.threads[thread])])));
  }
  return graphs.get(key);
}

const flame = new Flame(document, {
  hover: showTip,
  select: showDetails,
  focus: (node) => { state.zoom = pathOf(flame.graph, node); showCrumbs(); remember(); },
});
const table = new Table({
  choose: (fn) => { if (!selectWidest(fn)) table.choose(fn); },
  sort: () => remember(),
});

// ---- state and address

function remember() {
  const parts = new URLSearchParams();
  if (state.thread !== DEFAULTS.thread) parts.set("thread", state.thread);
  for (const name of ["view", "grow", "colour"]) if (state[name] !== DEFAULTS[name]) parts.set(name, state[name]);
  if (state.q) parts.set("q", state.q);
  if (state.regex) parts.set("regex", "1");
  if (state.zoom.length) parts.set("zoom", state.zoom.join("."));
  if (table.key !== DEFAULT_SORT || table.upwards) parts.set("sort", (table.upwards ? "+" : "-") + table.key);
  const hash = parts.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", "#" + hash);
}

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const oneOf = (name, values) => values.includes(parts.get(name)) ? parts.get(name) : DEFAULTS[name];
  state.thread = oneOf("thread", many ? data.threads.map((_, i) => String(i)) : []);
  state.view = oneOf("view", ["paths", "bottom-up"]);
  state.grow = oneOf("grow", ["down", "up"]);
  state.colour = oneOf("colour", colours);
  state.q = parts.get("q") || "";
  state.regex = parts.get("regex") === "1";
  state.zoom = (parts.get("zoom") || "").split(".").filter(Boolean).map(Number);
  const sort = /^([ +-])(.+)$/.exec(parts.get("sort") || "-" + DEFAULT_SORT);
  if (sort && COLUMNS.some((column) => column.key === sort[2])) [table.upwards, table.key] = [sort[1] !== "-", sort[2]];
}
const DEFAULTS = { ...state };
const DEFAULT_SORT = table.key;

// ---- drawing

function showAll() {
  $("thread").value = state.thread;
  for (const name of ["view", "grow", "colour"]) {
    for (const button of $(name).children) button.setAttribute("aria-pressed", String(button.value === state[name]));
  }
  $("search").value = state.q;
  $("regex").setAttribute("aria-pressed", String(state.regex));
  flame.grows = state.grow;
  flame.byModule = state.colour === "module";
  const side = table.lane = compared ? Number(state.thread) : 0;
  flame.rootName = state.thread === "all" && many ? `all ${data.threads.length} threads` : threadName(data.threads[state.thread === "all" ? 0 : state.thread]);
  const graph = graphOf(state.thread, state.view);
  const empty = !(graph.whole > 0);
  $("empty").hidden = !empty;
  $("empty").textContent = data.threads.length ? "No time was recorded in this thread." : "No call was recorded.";
  document.querySelector(".flame-scroll").hidden = empty;
  flame.differences = compared && new Differences(graphOf(state.thread, "paths"), side, state.colour);
  if (compared && state.view === "bottom-up") flame.differences = new Differences(graph, side, "total");
  flame.resized();
  flame.show(graph, state.zoom);
  sizeFlame();
  state.zoom = pathOf(graph, flame.focus);
  table.show(graphOf(state.thread, "paths"));
  search();
  showCrumbs();
  showDetails(-1);
}

// As high as the frames need, between a few rows and more than half of the window.
function sizeFlame() {
  const scroller = flame.scroller;
  const most = Math.max(12 * ROW, innerHeight * 0.56);
  scroller.style.height = Math.round(Math.min(most, Math.max(6, flame.rows + 1) * ROW)) + "px";
  flame.resized();
  flame.fit();
  flame.scrollToRoot();
  flame.reveal(flame.focus);
}

function threadName(thread) {
  if (!thread) return "";
  if (compared) return thread.name;
  return thread.merged > 1 ? `${thread.name} (${write.counted(thread.merged, "thread")})` : `${thread.name} (${thread.tid})`;
}

function search() {
  let test = null;
  $("search").parentNode.classList.remove("wrong");
  $("search").removeAttribute("aria-invalid");
  if (state.q && state.regex) {
    try {
      const pattern = new RegExp(state.q, "i");
      test = (text) => pattern.test(text);
    } catch {
      $("search").parentNode.classList.add("wrong");
      $("search").setAttribute("aria-invalid", "true");
    }
  } else if (state.q) {
    const wanted = state.q.toLowerCase();
    test = (text) => text.toLowerCase().includes(wanted);
  }
  const matches = test && Uint8Array.from(functions, ({ name, module }) => test(name) || test(module) ? 1 : 0);
  flame.matches = matches;
  table.filter(matches);
  const graph = graphOf(state.thread, "paths");
  $("matched").textContent = matches ? write.percent(graph.covered(matches), graph.whole) : "";
  $("matched").title = matches ? "Share of the time with a match on the stack" : "";
  flame.redraw();
}

function showCrumbs() {
  const { graph } = flame;
  const path = [];
  for (let node = flame.focus; node > 0; node = graph.parent[node]) path.push(node);
  path.push(0);
  path.reverse();
  // A deep path keeps its ends.
  const shown = path.length <= 24 ? path : [...path.slice(0, 6), -1, ...path.slice(-16)];
  const crumbs = shown.flatMap((node, i) => {
    const separator = i ? [element("i", { "aria-hidden": "true" }, "›")] : [];
    if (node < 0) return [...separator, element("span", null, `… ${path.length - 22} more …`)];
    const name = node === 0 ? flame.rootName : functions[graph.fn[node]].name;
    return [...separator, element("button", {
      type: "button", title: name, "aria-current": node === flame.focus ? "true" : null,
      onclick: () => flame.zoomTo(node),
    }, name)];
  });
  $("crumbs").replaceChildren(...crumbs);
  $("crumbs").scrollLeft = $("crumbs").scrollWidth;
  $("reset").disabled = flame.focus === 0 && !state.q;
}

function figuresOf(node) {
  const { graph } = flame, whole = graph.whole;
  const total = graph.total[node];
  const figures = [[state.view === "paths" ? "Total" : "Time", `${write.time(total)} (${write.percent(total, whole)})`]];
  if (node === 0) return figures;
  if (state.view === "paths") figures.push(["Self", `${write.time(graph.self[node])} (${write.percent(graph.self[node], whole)})`]);
  const beside = [["Waiting", graph.totalWaiting[node]], ["Hooks", graph.hooks[node]]];
  for (const [what, time] of beside) if (time > 0) figures.push([what, write.time(time)]);
  if (flame.focus > 0 && flame.focus !== node && graph.depth[node] > graph.depth[flame.focus]) {
    figures.push(["Of the zoomed", write.percent(total, graph.total[flame.focus])]);
  }
  if (compared) {
    const side = Number(state.thread);
    if (state.view === "paths") figures.push(["Change of self", comparing.words(side, graph.self[node], graph.other[node])]);
    figures.push([state.view === "paths" ? "Change of total" : "Change", comparing.words(side, total, graph.otherTotal[node])]);
  }
  figures.push([data.isSampled ? "Samples" : "Calls", write.count(graph.calls[node])]);
  const lack = graph.totalLack[node], less = graph.totalLess[node], more = graph.totalMore[node] + lack;
  if (state.view === "paths" && !compared && !data.isSampled) figures.push(["Per call", write.perCall(total, graph.calls[node], lacksMuch(total, less, more, lack), more)]);
  if (less + more > 0.01 * total) figures.splice(1, 0, [figures[0][0] + " lies", between(total, less, more)]);
  return figures;
}

function showTip(place, event) {
  const tip = $("tip");
  tip.hidden = !place;
  if (!place) return;
  const { graph } = flame, { node, thin } = place;
  if (thin) {
    const parent = graph.parent[node], end = graph.first[parent] + graph.count[parent];
    tip.replaceChildren(element("div", { class: "name" }, write.counted(end - node, "thin frame")),
      element("div", { class: "where" }, "Zoom in to see them apart."));
  } else {
    const { name, module, file, line } = node ? functions[graph.fn[node]] : { name: flame.rootName };
    const where = [module, file && file + (line ? ":" + line : "")].filter(Boolean).join(" · ");
    tip.replaceChildren(element("div", { class: "name" }, name),
      where ? element("div", { class: "where" }, where) : "",
      element("dl", null, ...figuresOf(node).flatMap(([what, figure]) => [element("dt", null, what), element("dd", null, figure)])));
  }
  const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - wide - 8)) + "px";
  tip.style.top = (event.clientY + 18 + high > innerHeight ? Math.max(8, event.clientY - high - 12) : event.clientY + 18) + "px";
}

function showDetails(node) {
  if (!(node > 0)) {
    $("details").replaceChildren(element("span", null, flame.graph && flame.graph.whole > 0
      ? `${write.time(flame.graph.whole)} in recorded functions, ${write.counted(graphOf(state.thread, "paths").size - 1, "call path")}. Click a frame to zoom; Ctrl and wheel zoom by hand.`
      : ""));
    return;
  }
  const fn = flame.graph.fn[node];
  $("details").replaceChildren(
    element("span", { class: "name" }, functions[fn].name),
    ...figuresOf(node).map(([what, figure]) => element("span", null, what + " ", element("b", null, figure))),
    element("button", { type: "button", class: "plain small", id: "copy", onclick: () => copy(functions[fn].name) }, "Copy name"),
    element("button", { type: "button", class: "plain small", onclick: () => setSearch(functions[fn].name, false) }, "Find all"));
  table.choose(fn);
}

// Selects the widest frame of a function chosen in the table, if it has one.
function selectWidest(fn) {
  const { graph } = flame;
  let best = -1;
  for (let node = 1; node < graph.size; node++) {
    if (graph.fn[node] === fn && (best < 0 || graph.total[node] > graph.total[best])) best = node;
  }
  if (best > 0) flame.go(best);
  return best > 0;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without permission, the old way: from a field, by command.
    const field = element("textarea", null);
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  const button = $("copy");
  if (button) {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy name"; }, 1200);
  }
}

// ---- what never changes

function showRun() {
  document.title = program + " – teeperf";
  $("command").textContent = program;
  $("command").title = command;
  const ticks = data.info.period > 0 && !bySamples;
  const period = ticks ? `, ${write.time(data.info.period)} apart` : "";
  const facts = [
    ["", write.duration(data.info.duration), ""],
    ["", write.count(data.threads.reduce((sum, thread) => sum + thread.merged, 0)), many ? " threads" : data.threads.length ? " thread" : " threads"],
    data.isSampled ? ["", write.count(data.events), " samples"]
      : data.onlySums ? ["", write.count(data.events / 2), " calls"] : ["", write.count(data.events), " calls and returns"],
    ["clock ", data.info.clock || "unknown", period],
  ];
  if (bySamples) {
    const { samples } = data.info;
    facts.splice(3, 0, ["", write.count(samples), samples === 1 ? " sample" : " samples"]);
  }
  if (compared) {
    const [later, earlier] = compared.runs.map((runs) => write.counted(runs, "run"));
    const sides = [["", compared.whole, ""], ["", `${earlier} → ${later}`, ""]];
    facts.splice(0, facts.length - 1, ...sides);
    $("thread-label").textContent = "Widths";
    $("colour").setAttribute("aria-label", "Colour by the change of");
    const titles = { self: "Colour by the change of a frame's own time", total: "Colour by the change of its time with all it called" };
    [...$("colour").children].forEach((button, i) => Object.assign(button, { value: colours[i], textContent: ["Self", "Total"][i], title: titles[colours[i]] }));
    $("legend").hidden = false;
    $("legend").append(...[["grew", "takes longer than before"], ["shrank", "takes less"], ["same", "no more different than noise explains"]]
      .map(([name, text]) => element("span", null, element("i", { class: name }), text)),
    element("span", null, "Frames are as wide as the time of the side chosen; what is on the other side alone is seen with its widths."));
    $("tab-threads").hidden = true;
    document.title = program + " – teeperf diff";
  }
  $("facts").replaceChildren(...facts.map(([before, figure, after]) => element("li", null, before, element("b", null, figure), after)));
  $("findings").hidden = !data.findings.length;
  const said = ({ what, next }) => element("p", null, what, next ? element("span", { class: "next" }, " " + next) : null);
  const box = (kind, findings) => findings.length ? element("div", { class: "finding " + kind }, ...findings.map(said)) : "";
  $("findings").replaceChildren(
    box("warning", data.findings.filter(({ warning }) => warning)), box("note", data.findings.filter(({ warning }) => !warning)));
  $("thread").replaceChildren(...[
    many && !compared ? element("option", { value: "all" }, `All ${data.threads.length} threads`) : null,
    ...data.threads.map((thread, i) => element("option", { value: many ? i : "all" }, threadName(thread))),
  ].filter(Boolean));
  $("thread").disabled = !many;

  const beside = [["waiting", "Waiting"], ["hooks", "Hooks"]]
    .filter(([key]) => data.threads.some((thread) => thread[key]));
  const heads = [
    "Thread", "Process", "Calls and returns", "Recorded functions", "First to last event",
    "CPU time", ...beside.map(([, head]) => head), "Waited for room",
  ];
  const rows = data.threads.map((thread, i) => element("tr", { onclick: () => change({ thread: many ? String(i) : "all", zoom: [] }) },
    element("td", { class: "text" }, element("button", { type: "button", class: "link" }, threadName(thread))),
    ...[
      String(thread.pid), write.count(thread.events), write.time(thread.framed),
      write.duration(thread.wall), thread.cpu == null ? "–" : write.duration(thread.cpu),
      ...beside.map(([key]) => write.duration(thread[key].all)), write.duration(thread.waited),
    ]
      .map((figure) => element("td", null, figure))));
  $("threads").replaceChildren(element("table", null,
    element("thead", null, element("tr", null, ...heads.map((head, i) => element("th", { class: i ? "plainhead" : "plainhead text", scope: "col" }, head)))),
    element("tbody", null, ...rows)));
  $("recording").replaceChildren(element("dl", null, ...data.about.flatMap(([what, text]) => [element("dt", null, what), element("dd", null, text)])));
}

// A thread by its ids, as the time line has them: of threads that are one here the first has them.
function threadOf(pid, tid) {
  const known = data.threads.find((thread) => thread.pid === pid && thread.tid === tid);
  return known ? threadName(known) : `thread ${tid}`;
}

// ---- what the user does

function change(what) {
  Object.assign(state, what);
  showAll();
  remember();
}

function setSearch(q, regex = state.regex) {
  Object.assign(state, { q, regex });
  $("search").value = q;
  $("regex").setAttribute("aria-pressed", String(regex));
  search();
  showCrumbs();
  remember();
}

function escape() {
  if (state.q) setSearch("");
  else flame.zoomTo(0);
}

function readTheme() {
  const colours = getComputedStyle(document.documentElement);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
  flame.theme = {
    dark, ink: "#1b1b1b",
    paper: colours.getPropertyValue("--card").trim(), rest: colours.getPropertyValue("--line").trim(),
    restInk: colours.getPropertyValue("--ink").trim(), faint: colours.getPropertyValue("--soft").trim(),
    accent: colours.getPropertyValue("--accent").trim(),
  };
  flame.draw();
}

$("thread").addEventListener("change", () => change({ thread: $("thread").value, zoom: [] }));
for (const name of ["view", "grow", "colour"]) {
  $(name).addEventListener("click", (event) => {
    if (event.target.value && event.target.value !== state[name]) {
      change({ [name]: event.target.value, ...(name === "view" ? { zoom: [] } : {}) });
    }
  });
}
let typing = 0;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => setSearch($("search").value), functions.length > 5000 ? 150 : 0);
});
$("regex").addEventListener("click", () => setSearch(state.q, !state.regex));
$("reset").addEventListener("click", () => { setSearch(""); flame.zoomTo(0); });
$("help-open").addEventListener("click", () => $("help").showModal());
const tabs = [...document.querySelectorAll('[role="tab"]')];
for (const tab of tabs) {
  tab.addEventListener("click", () => {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      $(other.getAttribute("aria-controls")).hidden = other !== tab;
    }
  });
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
}
addEventListener("keydown", (event) => {
  const inField = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape" && !$("help").open) return escape();
  if (inField || event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const acts = {
    "/": () => $("search").focus(),
    "?": () => $("help").showModal(),
    i: () => change({ view: state.view === "paths" ? "bottom-up" : "paths", zoom: [] }),
    c: () => { if (flame.selected > 0) copy(functions[flame.graph.fn[flame.selected]].name); },
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
});
addEventListener("hashchange", () => { recall(); showAll(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readTheme);
matchMedia("print").addEventListener("change", readTheme);

recall();
readTheme();
showRun();
showAll();
if (data.timeLine) {
  $("timeline").hidden = false;
  new TimeLine($("timeline"), data.timeLine, threadOf);
}
