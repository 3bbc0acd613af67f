/** What is seen of flows at the cursor: a line for readers, numbers for tests and benchmarks. */

import { shown } from "./axes.js";

/** @param {import("./flow.js").Run} run @param {number} count of flows */
export function sentence({ setting, history, second, index }, count) {
  const label = count === 1 ? "" : second ? "B: " : "A: ";
  const frame = history.frames[index];
  const groups = frame.condensed ? `${frame.count} cluster${frame.count > 1 ? "s" : ""}` : "not condensed";
  const parts = [frame.beta === null ? "" : `β = ${shown(frame.beta)}`, frame.counted === false ? "" : groups];
  if (frame.energy !== null) parts.push(`E = ${shown(frame.energy)}`);
  if (frame.order !== null && frame.order !== undefined) parts.push(`|mean| = ${shown(frame.order)}`);
  return `${label}${[...parts, what(setting, frame), ...point(setting)].filter(Boolean).join(" · ")}`;
}

function what({ kind, space, n, full, name, remote }, { sum }) {
  if (kind === "density") return `a density on ${space}`;
  if (kind === "numbers") return "numbers without a flow";
  const by = !sum ? "" : sum.name === "pairs" ? ", all pairs" : `, ${sum.name} to degree ${sum.degree}`;
  return `${n} tokens${by}${full > 3 ? `, ${full} coordinates` : ""}${remote && name !== "run" ? `, ${name}` : ""}`;
}

/** Where a sweep is looked at. */
function point({ sweep }) {
  return sweep ? sweep.axes.map(({ name, values }, k) => `${name} = ${typeof values[sweep.at[k]] === "number" ? shown(values[sweep.at[k]]) : values[sweep.at[k]]}`) : [];
}

/** @param {import("./flow.js").Run[]} runs @param {number} index of the frame of the first flow */
export function numbersOf(runs, index) {
  const now = runs[0].history.frames[index]?.t;
  return runs.map(({ history, prediction, second }) => {
    const { t, beta, count, condensed, energy } = history.frames[second ? history.indexAt(now) : index] ?? {};
    return { t, beta, count, condensed, energy, frames: history.frames.length, next: prediction?.next?.t ?? null };
  });
}

/** Tells a screen reader, by the text of a place, when condensed clusters have become fewer or more. */
export function announcer(place) {
  let said = 0;
  return ({ t, count, condensed }) => {
    if (!condensed || count === said) return;
    said = count;
    place.textContent = `${count} cluster${count > 1 ? "s" : ""} at t = ${shown(t)}`;
  };
}

/** The clock, the slider of time and the button beside it. */
export function showTime(frames, index, playing) {
  const [now, last] = [shown(frames[index].t), shown(frames.at(-1).t)];
  const slider = /** @type {HTMLInputElement} */ (document.getElementById("time"));
  Object.assign(slider, { max: String(frames.length - 1), value: String(index) });
  slider.setAttribute("aria-valuetext", `t = ${now} of ${last}`);
  document.getElementById("clock").textContent = `t = ${now}`;
  document.getElementById("play").textContent = playing ? "Pause" : "Play";
}
