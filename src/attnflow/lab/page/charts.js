/** The panels: each is a function of a pen, a size and what there is to see. */

import { across, horizon, inner, linear, onAxis, shown, timeAxis, timeScale, upright, valueAxis } from "./axes.js";
import { colourOf } from "./colours.js";
import { byBeta } from "./history.js";

/** Clusters that the axis has room for even while tokens have not condensed. */
const FEW = 20;
/** Pixels that the value of a new beta takes. */
const WRITTEN = 48;

/**
 * @typedef {object} View
 * @property {import("./main.js").Run[]} runs one flow, or two from the same start
 * @property {number} chosen the flow of panels that show one
 * @property {typeof import("./colours.js").CLUSTERS} colours of the page
 */

/** Dotted lines where beta changed on the way; where there is room for it, the new value at the height `level`. */
function markChanges(pen, box, x, { history, colour }, level = null) {
  const stretches = byBeta(history.frames);
  let room = box.right;
  for (let k = stretches.length - 1; k > 0; k--) {
    const at = x(stretches[k - 1].at(-1).t);
    upright(pen, box, at, { stroke: colour, dash: [1, 3], width: 1 });
    if (level === null || at + WRITTEN > room) continue;
    pen.text(at + 3, level, `β = ${shown(stretches[k][0].beta)}`, { fill: colour, size: 10 });
    room = at;
  }
}

/** Energy against time, plateaus shaded, pale where beta changed; theory: the plateau after the next merge. */
export function drawEnergy(pen, width, height, view) {
  const box = inner(width, height);
  const { colours, runs } = view;
  const frames = runs.flatMap((run) => onAxis(run.history.frames));
  const own = runs[view.chosen];
  const next = own.prediction?.next;
  const energies = [...frames.map((frame) => frame.energy), ...(next ? [next.energy] : [])];
  const [least, most] = [Math.min(...energies), Math.max(...energies)];
  const margin = 0.1 * (most - least) + 1e-4;
  const last = frames.reduce((one, frame) => Math.max(one, frame.t), 0);
  const y = valueAxis(pen, box, least - margin, Math.min(most + margin, margin / 2), colours);
  const x = timeScale(box, last);
  for (const { start, end, clusters } of own.history.plateaus()) {
    const [left, right] = [x(start), x(end)];
    pen.rect(left, box.top, right - left, box.bottom - box.top, { fill: own.colour, alpha: 0.1 });
    if (right - left > 12) {
      pen.text((left + right) / 2, box.bottom - 5, String(clusters), {
        fill: own.colour,
        size: 11,
        align: "center",
        weight: "600",
      });
    }
  }
  if (next) {
    const from = Math.min(x(next.t), box.right - 10);
    across(pen, { ...box, left: from }, y(next.energy), { stroke: colours.theory, dash: [4, 3] });
    if (next.t < horizon(last)) upright(pen, box, from, { stroke: colours.theory, dash: [1, 3], width: 1 });
    else pen.text(box.right, y(next.energy) - 5, "later →", { fill: colours.theory, size: 10, align: "right" });
  }
  for (const run of runs) {
    const lines = byBeta(onAxis(run.history.frames)).map((part) => part.map(({ t, energy }) => [x(t), y(energy)]));
    lines.forEach((line, k) => {
      if (k) pen.path([lines[k - 1].at(-1), line[0]], { stroke: run.colour, width: 1, alpha: 0.35 });
      pen.path(line, { stroke: run.colour, width: 1.8 });
    });
    markChanges(pen, box, x, run, box.bottom - 18);
    const now = run.history.frames[run.index];
    if (now) pen.dot(x(now.t), y(now.energy), 3.2, { fill: run.colour });
  }
  timeAxis(pen, box, last, colours, own.history.frames[own.index]?.t ?? null);
}

/** Cluster count against time, pale where tokens have not condensed; theory: the expected number of modes. */
export function drawCounts(pen, width, height, view) {
  const box = inner(width, height);
  const { colours, runs } = view;
  const frames = runs.flatMap((run) => onAxis(run.history.frames));
  const last = frames.reduce((most, frame) => Math.max(most, frame.t), 0);
  const modes = runs[view.chosen].prediction?.modes;
  const most = frames.reduce(
    (one, frame) => Math.max(one, frame.condensed || frame.count <= FEW ? frame.count : 1),
    modes ?? 1,
  );
  const cap = Math.min(Math.max(4, Math.ceil(1.15 * most)), 1000);
  const y = valueAxis(pen, box, 0, cap, colours);
  const x = timeScale(box, last);
  if (modes) across(pen, box, y(modes), { stroke: colours.theory, dash: [4, 3] });
  for (const run of runs) {
    const drawn = onAxis(run.history.frames);
    for (const condensed of [false, true]) {
      let line = [];
      const flush = () => {
        pen.path(line, { stroke: run.colour, width: condensed ? 2 : 1, alpha: condensed ? 1 : 0.45 });
        line = [];
      };
      drawn.forEach((frame, k) => {
        const after = drawn[k + 1];
        if (frame.condensed !== condensed) return flush();
        line.push([x(frame.t), y(Math.min(frame.count, cap))]);
        if (after) line.push([x(after.t), y(Math.min(frame.count, cap))]);
      });
      flush();
    }
    markChanges(pen, box, x, run, box.top + 8);
    const now = run.history.frames[run.index];
    if (now) pen.dot(x(now.t), y(Math.min(now.count, cap)), 3.2, { fill: run.colour });
  }
  timeAxis(pen, box, last, colours, runs[0].history.frames[runs[0].index]?.t ?? null);
}

/** The tree of merges in log time; theory: the pair that merges next. */
export function drawTree(pen, width, height, view) {
  const box = inner(width, height);
  const { colours } = view;
  const run = view.runs[view.chosen];
  const latest = run.history.frames.at(-1);
  const last = latest?.t ?? 0;
  const x = timeScale(box, last);
  const { births, merges } = lasting(latest?.tree ?? { births: [], merges: [] });
  if (!births.length) {
    pen.text((box.left + box.right) / 2, (box.top + box.bottom) / 2, "no cluster has condensed yet", {
      fill: colours.grey,
      align: "center",
    });
  }
  const row = rowsOf(births, merges);
  const y = linear(box.top + 6, box.bottom - 6, 0, Math.max(births.length - 1, 1));
  const end = births.map(() => last);
  merges.forEach(({ t, name }) => (end[name] = t));
  const thick = births.length > 40 ? 1 : 2;
  births.forEach(({ t, name }, k) => {
    across(pen, { left: x(t), right: x(end[k]) }, y(row[k]), { stroke: colourOf(name, colours), width: thick });
  });
  for (const { t, name, into } of merges) {
    const stroke = colourOf(births[name].name, colours);
    upright(pen, { top: y(row[name]), bottom: y(row[into]) }, x(t), { stroke, width: thick });
    pen.dot(x(t), y(row[into]), thick + 0.6, { fill: colours.ink });
  }
  const next = run.prediction?.next;
  const pair = next?.names.map((name) => births.findLastIndex((one, k) => one.name === name && end[k] === last)) ?? [];
  if (pair.length === 2 && pair.every((k) => k >= 0)) {
    const at = Math.min(x(next.t), box.right + 3);
    const dashed = { stroke: colours.theory, dash: [4, 3] };
    for (const k of pair) across(pen, { left: x(last), right: at }, y(row[k]), dashed);
    upright(pen, { top: y(row[pair[0]]), bottom: y(row[pair[1]]) }, at, dashed);
  }
  markChanges(pen, box, x, run);
  timeAxis(pen, box, last, colours, run.history.frames[run.index]?.t ?? null);
}

/** The tree without clusters that fell apart again, and without those that had merged into them. */
export function lasting({ births, merges }) {
  const gone = new Set();
  for (const { name, into } of merges.toReversed()) if (into < 0 || gone.has(into)) gone.add(name);
  const kept = births.map((_, k) => k).filter((k) => !gone.has(k));
  const now = new Map(kept.map((k, at) => [k, at]));
  return {
    births: kept.map((k) => births[k]),
    merges: merges
      .filter(({ name, into }) => now.has(name) && now.has(into))
      .map(({ t, name, into }) => ({ t, name: now.get(name), into: now.get(into) })),
  };
}

/** A row for each branch, so that what merges lies side by side. */
function rowsOf(births, merges) {
  const inside = births.map((_, k) => [k]);
  const root = births.map((_, k) => k);
  merges.forEach(({ name, into }) => {
    const [a, b] = [root[into], root[name]];
    if (a === b) return;
    inside[a].push(...inside[b]);
    for (const k of inside[b]) root[k] = a;
    inside[b] = [];
  });
  const row = new Array(births.length);
  inside.flat().forEach((k, at) => (row[k] = at));
  return row;
}

/** The density of overlaps; theory: that of iid uniform tokens. */
export function drawOverlaps(pen, width, height, view) {
  const box = inner(width, height);
  const { colours } = view;
  const run = view.runs[view.chosen];
  const bins = run.history.frames[run.index]?.overlaps ?? [];
  const top = Math.max(2, ...[...bins].map((one) => Math.min(one, 12))) * 1.05;
  const y = valueAxis(pen, box, 0, top, colours);
  const x = linear(box.left, box.right, -1, 1);
  bins.forEach((value, k) => {
    const [left, right] = [x(-1 + (2 * k) / bins.length), x(-1 + (2 * (k + 1)) / bins.length)];
    const up = y(Math.min(value, top));
    pen.rect(left + 0.5, up, right - left - 1, box.bottom - up, { fill: run.colour, alpha: 0.75 });
  });
  const line = [];
  const full = run.setting.full ?? run.setting.d; // coordinates of a token, whatever is drawn of them
  let factor = full % 2 ? 0.5 : 1 / Math.PI;
  for (let d = full % 2 ? 3 : 2; d < full; d += 2) factor *= d / (d - 1);
  for (let k = 1; k < 200; k++) {
    const u = -1 + k / 100;
    const density = factor * (1 - u * u) ** ((full - 3) / 2);
    if (density <= top) line.push([x(u), y(density)]);
  }
  pen.path(line, { stroke: colours.theory, dash: [4, 3] });
  across(pen, box, box.bottom, { stroke: colours.grey, width: 0.8 });
  for (const u of [-1, -0.5, 0, 0.5, 1]) {
    pen.text(x(u), box.bottom + 14, shown(u), { fill: colours.grey, size: 10, align: "center" });
  }
}

/** The size of each degree, on a log scale; theory: what linear growth makes of the start. */
export function drawModes(pen, width, height, view) {
  const box = inner(width, height);
  const { colours } = view;
  const run = view.runs[view.chosen];
  const now = run.history.frames[run.index];
  const [low, high] = [-3, 0.05];
  const y = linear(box.bottom, box.top, low, high);
  for (const power of [-3, -2, -1, 0]) {
    across(pen, box, y(power), { stroke: colours.faint, width: 0.7 });
    pen.text(box.left - 5, y(power) + 3.5, shown(10 ** power), { fill: colours.grey, size: 10, align: "right" });
  }
  const count = now?.modes.length ?? 12;
  const x = linear(box.left, box.right, 0.4, count + 0.6);
  const step = x(2) - x(1);
  const level = (size) => y(Math.min(high, Math.max(low, Math.log10(size || 1e-9))));
  now?.modes.forEach((size, k) => {
    const up = level(size);
    pen.rect(x(k + 1) - 0.32 * step, up, 0.64 * step, box.bottom - up, { fill: run.colour, alpha: 0.75 });
  });
  run.prediction?.grown?.forEach((size, k) => {
    const up = level(size);
    const middle = x(k + 1);
    across(pen, { left: middle - 0.42 * step, right: middle + 0.42 * step }, up, { stroke: colours.theory, width: 2 });
  });
  across(pen, box, box.bottom, { stroke: colours.grey, width: 0.8 });
  for (let k = 1; k <= count; k++) {
    const fastest = run.prediction?.fastest === k;
    const letters = {
      size: 10,
      align: "center",
      fill: fastest ? colours.theory : colours.grey,
      weight: fastest ? "700" : "normal",
    };
    if (step > 16 || k % 2 || fastest) pen.text(x(k), box.bottom + 14, String(k), letters);
  }
}

/** Attention among a few tokens, each row relative to its largest weight. */
export function drawAttention(pen, width, height, view) {
  const { colours } = view;
  const run = view.runs[view.chosen];
  const { size = 0, weights = [] } = run.history.frames[run.index]?.attention ?? {};
  const side = Math.min(width - 60, height - 26);
  const [left, top] = [Math.round((width - side) / 2), 6];
  pen.rect(left, top, side, side, { fill: colours.wash });
  const edge = (k) => Math.round((side * k) / Math.max(size, 1));
  for (let row = 0; row < size; row++) {
    // neighbours of one shade are one rectangle
    for (let from = 0; from < size;) {
      const shade = weights[row * size + from] >> 4;
      let to = from + 1;
      while (to < size && weights[row * size + to] >> 4 === shade) to += 1;
      if (shade) {
        const look = { fill: run.colour, alpha: shade / 15 };
        pen.rect(left + edge(from), top + edge(row), edge(to) - edge(from), edge(row + 1) - edge(row), look);
      }
      from = to;
    }
  }
  pen.text(width / 2, top + side + 14, "rows: query i, columns: key j", {
    fill: colours.grey,
    size: 10,
    align: "center",
  });
}
