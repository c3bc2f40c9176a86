// What the page was given: functions, threads and their trees, and how to write numbers.
// Names are only ever put into text nodes and onto the canvas.

const data = JSON.parse(document.getElementById("profile").textContent);
const modules = data.modules;
const functions = data.functions.map(([name, module, file, line]) => ({
  name, module: modules[module], file: file < 0 ? "" : data.files[file], line,
}));

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Unsigned LEB128 numbers, up to 2^53.
function numbersOf(base64, into) {
  const bytes = bytesOf(base64);
  let at = 0;
  for (let i = 0; i < into.length; i++) {
    let value = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    into[i] = value;
  }
  return into;
}

// How much more the times of each node may be: where there was no room for paths, what was called is in no caller's.
function lacksOf(noRoom, { parent, fn, self, more }) {
  const lack = new Float64Array(fn.length), totalLack = new Float64Array(fn.length);
  for (let i = 1; noRoom && i < fn.length; i++) {
    if (fn[i] === noRoom.function) continue;
    totalLack[i] = noRoom.total;
    if (parent[i] && fn[parent[i]] === noRoom.function) {
      lack[i] = noRoom.self;
      totalLack[i] -= self[i] + more[i];
    }
  }
  return { lack, totalLack };
}

// The same of a function, over all its calls in a thread. `functions` has all of the thread, each with the most that
// it has itself where there was no room; null where all of its calls found room.
function lackOf({ function: noRoom, total, self, nameless, functions }, fn) {
  const own = functions.get(fn);
  if (fn === noRoom) return { lack: 0, totalLack: 0 };
  if (own != null) return { lack: self, totalLack: total - own };
  if (nameless) return { lack: self, totalLack: total };
  return { lack: 0, totalLack: own === null ? total : 0 };
}

// Columns of a thread's tree; node 0 is the root, callers stand before callees.
function columnsOf(thread) {
  const n = thread.nodes;
  const parent = numbersOf(thread.up, new Int32Array(n));
  for (let i = 1; i < n; i++) parent[i] = i - parent[i];
  const fn = numbersOf(thread.function, new Int32Array(n));
  const beside = (part) => {
    const column = new Float64Array(n);
    return part?.paths ? numbersOf(part.paths, column) : column;
  };
  const columns = {
    parent,
    fn,
    calls: numbersOf(thread.calls, new Float64Array(n)),
    self: numbersOf(thread.self, new Float64Array(n)),
    less: numbersOf(thread.less, new Float64Array(n)),
    more: numbersOf(thread.more, new Float64Array(n)),
    waiting: beside(thread.waiting),
    hooks: beside(thread.hooks),
    // Of the other side, where two are compared.
    other: data.compared ? numbersOf(data.threads[1 - data.threads.indexOf(thread)].self, new Float64Array(n)) : new Float64Array(n),
  };
  const noRoom = thread.noRoom && { ...thread.noRoom, functions: new Map(thread.noRoom.functions) };
  return { ...columns, ...lacksOf(noRoom, columns), noRooms: noRoom ? [noRoom] : [] };
}

const coloursByModule = bytesOf(data.colours.module);
const coloursByFunction = bytesOf(data.colours.function);

function colourOf(fn, byModule, dimmed) {
  const bytes = byModule ? coloursByModule : coloursByFunction;
  const c = (i) => Math.round(bytes[3 * fn + i] * dimmed);
  return `rgb(${c(0)},${c(1)},${c(2)})`;
}

const write = {
  // Four significant digits in the unit that fits; where the clock's rate is not known, what it counted.
  time(time, unitOfTime = data.info.unit) {
    const units = unitOfTime === "ns"
      ? [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]]
      : [["counts", 1], ["k counts", 1e3], ["M counts", 1e6], ["G counts", 1e9], ["T counts", 1e12]];
    if (!(time > 0)) return "0 " + units[0][0];
    const [unit, size] = units.find(([, size]) => time / size < 999.95) ?? units.at(-1);
    return write.digits(time / size) + " " + unit;
  },
  // Of the run, and what threads had.
  duration: (time) => write.time(time, data.info.unitOfDurations),
  digits(value) {
    return value.toFixed(value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0);
  },
  count: (n) => n.toLocaleString("en-US"),
  counted: (n, noun) => write.count(n) + " " + noun + (n === 1 ? "" : "s"),
  percent(part, whole) {
    const percent = whole > 0 ? Math.min(100, 100 * part / whole) : 0;
    if (percent === 0) return "0 %";
    return percent.toFixed(percent < 0.01 ? 4 : percent < 10 ? 2 : 1) + " %";
  },
  // What a call took on average, as the text report has it: where ten ticks fell into all of them together, else what it is
  // below. Not where the total lacks much.
  perCall(total, calls, lacks, more) {
    if (!calls || lacks) return "–";
    const { period, samples } = data.info;
    // The page has no bounds of few samples for a function as a whole.
    if (samples != null && total < 10 * period) return "–";
    const ticks = Math.max(2 * Math.sqrt(total * period), 3 * period);
    // The processor looks at the tick some nanoseconds ahead of time.
    return total < 10 * period ? "< " + write.time((total + more + ticks) / calls + 6) : write.time(total / calls);
  },
};

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}
