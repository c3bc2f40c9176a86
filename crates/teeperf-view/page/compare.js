// Two sides of runs on one page: its two threads, which have the same call paths, the later one first. Red is what
// takes longer than before, blue what takes less, grey what noise explains.

const compared = data.compared || null;

// How a figure of the side in sight differs, the later less the earlier one.
function differenceOf(side, here, there) {
  return side === 0 ? here - there : there - here;
}

// Whether two times differ by more than ticks, and what runs usually differ by, explain: as Diff::tells_apart has it.
function toldApart(side, here, there) {
  const variance = (at, ns) => ((compared.spread * ns) ** 2 + compared.periods[at] * (ns + compared.periods[at])) / Math.max(1, compared.runs[at]);
  return Math.abs(here - there) > 1.96 * Math.sqrt(variance(side, here) + variance(1 - side, there));
}

// The figures that colours are made of: of a frame itself, or of all below it too. Of functions first there is one.
function comparedTimes(graph, node, by) {
  return by === "total" || graph.isBottomUp ? [graph.total[node], graph.otherTotal[node]] : [graph.self[node], graph.other[node]];
}

// A colour for each frame of a graph, made when it is asked for.
class Differences {
  constructor(graph, side, by) {
    Object.assign(this, { graph, side, by, most: 0 });
    if (graph.size) graph.expand(0);
    for (let node = 1; node < graph.size; node++) {
      const [here, there] = comparedTimes(graph, node, by);
      this.most = Math.max(this.most, Math.abs(here - there));
    }
  }

  colour(node, dimmed) {
    const [here, there] = comparedTimes(this.graph, node, this.by);
    const difference = differenceOf(this.side, here, there);
    if (!toldApart(this.side, here, there)) return `hsl(0 0% ${88 * dimmed}%)`;
    const strength = Math.sqrt(Math.min(1, Math.abs(difference) / (this.most || 1)));
    return `hsl(${difference > 0 ? 4 : 215} 90% ${(92 - 22 * strength) * dimmed}%)`;
  }
}

// What the tip and the table say.
const comparing = {
  signed: (difference) => (difference < 0 ? "−" : "+") + write.time(Math.abs(difference)),
  words(side, here, there) {
    const [before, after] = side === 0 ? [there, here] : [here, there];
    const part = before > 0 ? `, ${after < before ? "−" : "+"}${(100 * Math.abs(after - before) / before).toFixed(1)} %` : after > 0 ? ", new" : "";
    return `${comparing.signed(after - before)}${part}${toldApart(side, here, there) ? "" : " (within noise)"}`;
  },
};
