// Trees as the flame graph draws them. Children of a node stand together, widest first:
// first[n] to first[n] + count[n]; start[n] is where its time begins. In a bottom-up
// graph a node's children are made when they are asked for.

const SUMS = ["calls", "self", "less", "more", "lack", "totalLack", "waiting", "hooks", "other"];

// Trees of several threads as one: equal call paths become one node.
function merged(trees) {
  if (trees.length === 1) return trees[0];
  const size = trees.reduce((sum, tree) => sum + tree.fn.length, 0);
  const all = { parent: new Int32Array(size), fn: new Int32Array(size) };
  for (const name of SUMS) all[name] = new Float64Array(size);
  const known = new Map();
  let count = 1;
  for (const tree of trees) {
    const place = new Int32Array(tree.fn.length);
    for (let i = 0; i < place.length; i++) {
      if (i > 0) {
        const parent = place[tree.parent[i]];
        const key = parent * functions.length + tree.fn[i];
        let at = known.get(key);
        if (at === undefined) {
          known.set(key, at = count++);
          all.parent[at] = parent;
          all.fn[at] = tree.fn[i];
        }
        place[i] = at;
      }
      for (const name of SUMS) all[name][place[i]] += tree[name][i];
    }
  }
  for (const name of Object.keys(all)) all[name] = all[name].subarray(0, count);
  return { ...all, noRooms: trees.flatMap((tree) => tree.noRooms) };
}

// Callers above, what they called below. `tree` as columnsOf and merged make it.
class TopDown {
  constructor(tree) {
    const n = tree.fn.length;
    const sum = (own) => {
      const sums = Float64Array.from(own);
      if (n) sums[0] = 0; // Time with no frame is no part of the graph.
      for (let i = n - 1; i > 0; i--) sums[tree.parent[i]] += sums[i];
      return sums;
    };
    const total = sum(tree.self);
    const from = new Int32Array(n + 1);
    for (let i = 1; i < n; i++) from[tree.parent[i] + 1]++;
    for (let i = 0; i < n; i++) from[i + 1] += from[i];
    const free = from.slice();
    const list = new Int32Array(n);
    for (let i = 1; i < n; i++) list[free[tree.parent[i]]++] = i;

    // Breadth first, so that siblings are neighbours.
    const order = new Int32Array(n);
    this.first = new Int32Array(n);
    this.count = new Int32Array(n);
    this.parent = new Int32Array(n);
    this.depth = new Int32Array(n);
    let made = n ? 1 : 0;
    for (let at = 0; at < made; at++) {
      const old = order[at];
      const children = list.subarray(from[old], from[old + 1]);
      if (children.length > 1) {
        children.sort((a, b) => total[b] - total[a] || tree.fn[a] - tree.fn[b]);
      }
      this.first[at] = made;
      this.count[at] = children.length;
      for (const child of children) {
        this.parent[made] = at;
        this.depth[made] = this.depth[at] + 1;
        order[made++] = child;
      }
    }
    const take = (column) => column.constructor.from(order, (old) => column[old]);
    this.fn = take(tree.fn);
    this.calls = take(tree.calls);
    this.self = take(tree.self);
    this.less = take(tree.less);
    this.more = take(tree.more);
    this.lack = take(tree.lack);
    this.total = take(total);
    this.totalLess = take(sum(tree.less));
    this.totalMore = take(sum(tree.more));
    this.totalLack = take(tree.totalLack);
    this.waiting = take(tree.waiting);
    this.totalWaiting = take(sum(tree.waiting));
    this.hooks = take(tree.hooks);
    // Times of the other side of a comparison.
    this.other = take(tree.other);
    this.otherTotal = take(sum(tree.other));
    this.noRooms = tree.noRooms;
    this.start = new Float64Array(n);
    const next = new Float64Array(n);
    for (let i = 1; i < n; i++) {
      const parent = this.parent[i];
      this.start[i] = this.start[parent] + next[parent];
      next[parent] += this.total[i];
    }
  }

  get size() { return this.fn.length; }
  get whole() { return this.size ? this.total[0] : 0; }
  expand() {}

  // Share of the time in which a function of the set is on the stack.
  covered(set) {
    let sum = 0;
    const within = new Uint8Array(this.size);
    for (let i = 1; i < this.size; i++) {
      if (within[this.parent[i]]) within[i] = 1;
      else if (set[this.fn[i]]) {
        within[i] = 1;
        sum += this.total[i];
      }
    }
    return sum;
  }

  // Calls enter(node) and leave(node) for every frame, as a run would.
  walk(enter, leave) {
    const stack = [];
    const push = (node) => {
      for (let i = 0; i < this.count[node]; i++) stack.push(this.first[node] + i);
    };
    if (this.size) push(0);
    while (stack.length) {
      const node = stack.pop();
      if (node < 0) {
        leave(~node);
      } else {
        enter(node);
        stack.push(~node);
        push(node);
      }
    }
  }

  // A row for each function that was called; the time of recursion counts once.
  rows() {
    const rows = new Map();
    const open = new Int32Array(functions.length);
    this.walk((node) => {
      const fn = this.fn[node];
      let row = rows.get(fn);
      if (!row) {
        rows.set(fn, row = {
          fn, calls: 0, total: 0, self: 0, less: 0, more: 0, totalLess: 0, totalMore: 0,
          totalLack: 0, waiting: 0, hooks: 0, other: 0, otherTotal: 0,
        });
      }
      row.other += this.other[node];
      row.calls += this.calls[node];
      row.self += this.self[node];
      row.less += this.less[node];
      row.more += this.more[node];
      row.hooks += this.hooks[node];
      if (open[fn]++ === 0) {
        row.total += this.total[node];
        row.totalLess += this.totalLess[node];
        row.totalMore += this.totalMore[node];
        row.waiting += this.totalWaiting[node];
        row.otherTotal += this.otherTotal[node];
      }
    }, (node) => { open[this.fn[node]]--; });
    // What paths may lack is no more for a function that has many.
    for (const row of rows.values()) {
      for (const noRoom of this.noRooms) {
        const { lack, totalLack } = lackOf(noRoom, row.fn);
        row.more += lack;
        row.totalMore += totalLack;
        row.totalLack += totalLack;
      }
    }
    return [...rows.values()];
  }

  // Who called a function and whom it called; time within a call of the same pair counts once.
  neighbours(fn) {
    const side = () => ({ rows: new Map(), open: new Int32Array(functions.length + 1) });
    const callers = side(), callees = side();
    // The last place stands for no caller at all.
    const callerOf = (node) => this.parent[node] ? this.fn[this.parent[node]] : functions.length;
    const enter = ({ rows, open }, other, node) => {
      let row = rows.get(other);
      if (!row) rows.set(other, row = { fn: other, calls: 0, time: 0 });
      row.calls += this.calls[node];
      if (open[other]++ === 0) row.time += this.total[node];
    };
    this.walk((node) => {
      if (this.fn[node] === fn) enter(callers, callerOf(node), node);
      if (callerOf(node) === fn) enter(callees, this.fn[node], node);
    }, (node) => {
      if (this.fn[node] === fn) callers.open[callerOf(node)]--;
      if (callerOf(node) === fn) callees.open[this.fn[node]]--;
    });
    const sorted = ({ rows }) => [...rows.values()].sort((a, b) => b.time - a.time || b.calls - a.calls);
    return { callers: sorted(callers), callees: sorted(callees) };
  }
}

const BOTTOM_UP_SUMS = [
  "start", "total", "self", "calls", "less", "more", "totalLess", "totalMore", "totalLack",
  "totalWaiting", "hooks", "otherTotal",
];

// Functions by their own time first, and under each its callers. The children of a node
// hold the (origin, place) pairs that the node had, a step nearer to the root.
class BottomUp {
  constructor(down) {
    this.down = down;
    this.isBottomUp = true;
    const places = ["fn", "parent", "depth", "first", "count"];
    for (const name of [...places, ...BOTTOM_UP_SUMS]) this[name] = [];
    this.items = [];
    const all = Int32Array.from({ length: Math.max(0, down.size - 1) }, (_, i) => i + 1);
    this.push(0, 0, 0, { origin: all, place: all });
    for (const i of all) this.weigh(0, i);
  }

  get size() { return this.fn.length; }
  get whole() { return this.total[0]; }

  push(fn, parent, depth, items) {
    for (const name of BOTTOM_UP_SUMS) this[name].push(0);
    this.fn.push(fn);
    this.parent.push(parent);
    this.depth.push(depth);
    this.first.push(0);
    this.count.push(-1);
    this.items.push(items);
  }

  weigh(node, origin) {
    this.total[node] += this.down.self[origin];
    this.calls[node] += this.down.calls[origin];
    this.totalLess[node] += this.down.less[origin];
    this.totalMore[node] += this.down.more[origin];
    this.totalLack[node] += this.down.lack[origin];
    this.totalWaiting[node] += this.down.waiting[origin];
    this.hooks[node] += this.down.hooks[origin];
    this.otherTotal[node] += this.down.other[origin];
  }

  expand(node) {
    if (this.count[node] >= 0) return;
    const { origin, place } = this.items[node];
    this.items[node] = null;
    const groups = new Map();
    for (let i = 0; i < origin.length; i++) {
      const at = node === 0 ? place[i] : this.down.parent[place[i]];
      if (at === 0) continue;
      const fn = this.down.fn[at];
      let group = groups.get(fn);
      if (!group) groups.set(fn, group = { fn, origin: [], place: [], total: 0 });
      group.origin.push(origin[i]);
      group.place.push(at);
      group.total += this.down.self[origin[i]];
    }
    const children = [...groups.values()].sort((a, b) => b.total - a.total || a.fn - b.fn);
    this.first[node] = this.size;
    this.count[node] = children.length;
    let start = this.start[node];
    for (const group of children) {
      const at = this.size;
      this.push(group.fn, node, this.depth[node] + 1, {
        origin: Int32Array.from(group.origin), place: Int32Array.from(group.place),
      });
      for (const i of group.origin) this.weigh(at, i);
      if (node === 0) this.self[at] = this.total[at];
      this.start[at] = start;
      start += this.total[at];
    }
  }
}

// Functions on the way from the root to a node, and back again; both leave the root out.
function pathOf(graph, node) {
  const path = [];
  for (; node > 0; node = graph.parent[node]) path.push(graph.fn[node]);
  return path.reverse();
}

function nodeAt(graph, path) {
  let node = 0;
  for (const fn of path) {
    graph.expand(node);
    let found = -1;
    for (let i = 0; i < graph.count[node]; i++) {
      if (graph.fn[graph.first[node] + i] === fn) found = graph.first[node] + i;
    }
    if (found < 0) return node;
    node = found;
  }
  return node;
}
