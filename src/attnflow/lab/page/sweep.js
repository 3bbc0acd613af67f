/** Sweeps: their axes as choices, and a panel with a curve through the chosen point. */

import { across, inner, linear, shown, upright, valueAxis } from "./axes.js";
import { element } from "./controls.js";

/**
 * @typedef {{ along: string, values: (number | null)[], mean?: (number | null)[], error?: (number | null)[] }} Curve
 * @typedef {{ name: string, axes: { name: string, values: any[] }[], at: number[], curves: Record<string, Curve[]> }} Sweep
 */

/** Spans of an axis above which it is logarithmic. */
const WIDE = 15;

/** The variable and the axis of a text such as energy|field.beta, or the first ones. @param {Sweep} sweep */
export function curveOf(sweep, text) {
  const [name, along] = text.split("|");
  const variable = name in sweep.curves ? name : Object.keys(sweep.curves)[0];
  const rows = sweep.curves[variable] ?? [];
  return { variable, curve: rows.find((row) => row.along === along) ?? rows[0] ?? null };
}

/** Choices of a value on every axis, of a variable and of the axis of its curve; calls `onChange(key, text)`. */
export function drawChoices(place, sweep, key, text, onChange) {
  place.replaceChildren();
  if (!sweep) return;
  const grid = element(place, "div", { className: "grid" });
  const choice = (id, words, options, value, chosen) => {
    element(grid, "label", { htmlFor: id, textContent: words });
    const select = element(grid, "select", { id });
    options.forEach((one, k) => element(select, "option", { value: k, textContent: one }));
    select.value = value;
    select.onchange = () => chosen(Number(select.value));
  };
  const words = (one) => (typeof one === "number" ? shown(one, 5) : String(one));
  sweep.axes.forEach(({ name, values }, a) =>
    choice(`${key}-${a}`, name, values.map(words), sweep.at[a], (k) => onChange(key, sweep.at.with(a, k).join(","))),
  );
  const { variable, curve } = curveOf(sweep, text);
  if (!curve || key !== "at") return; // both flows have one curve
  const names = Object.keys(sweep.curves);
  const rows = sweep.curves[variable].map((row) => row.along);
  const write = (name, along) => onChange("curve", `${name}|${along}`);
  choice(`${key}-variable`, "curve of", names, names.indexOf(variable), (k) => write(names[k], curve.along));
  choice(`${key}-along`, "against", rows, rows.indexOf(curve.along), (k) => write(variable, rows[k]));
}

/** Values of an axis as numbers: themselves or their logarithms, else their places. */
function places(values) {
  const numbers = values.length > 1 && values.every((one) => typeof one === "number");
  if (!numbers) return { at: values.map((_, k) => k), log: false };
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const log = low > 0 && high > WIDE * low;
  return { at: values.map((one) => (log ? Math.log(one) : one)), log };
}

/** A variable of a sweep against an axis, through the chosen point; the mean over seeds where there are several. */
export function drawSweep(pen, width, height, { runs, chosen, colours, curve: text }) {
  const full = inner(width, height);
  const box = { ...full, top: full.top + 14 };
  const { sweep } = runs[chosen].setting;
  const { variable, curve } = curveOf(sweep, text);
  if (!curve) return;
  pen.text(box.left, full.top + 4, `${variable} against ${curve.along}`, { fill: colours.grey, size: 11 });
  const axis = sweep.axes.find(({ name }) => name === curve.along);
  const { at } = places(axis.values);
  const edge = 0.04 * (Math.max(...at) - Math.min(...at)) || 0.5;
  const x = linear(box.left, box.right, Math.min(...at) - edge, Math.max(...at) + edge);
  const bounds = (curve.mean ?? []).flatMap((one, k) => (one === null ? [] : [one - (curve.error[k] ?? 0), one + (curve.error[k] ?? 0)]));
  const known = [...curve.values, ...bounds].filter((one) => one !== null);
  const [low, high] = [Math.min(...known, Infinity), Math.max(...known, -Infinity)];
  if (!known.length) return;
  const margin = 0.08 * (high - low) || Math.abs(high) / 10 || 1;
  const y = valueAxis(pen, box, low - margin, high + margin, colours);
  const line = (values, look) => pen.path(values.flatMap((one, k) => (one === null ? [] : [[x(at[k]), y(one)]])), look);
  const { colour } = runs[chosen];
  (curve.error ?? []).forEach((one, k) => {
    if (one === null || curve.mean[k] === null) return;
    const ends = [curve.mean[k] - one, curve.mean[k] + one].map((value) => [x(at[k]), y(value)]);
    pen.path(ends, { stroke: colour, width: 1, alpha: 0.6 });
  });
  line(curve.mean ?? curve.values, { stroke: colour, width: 1.8 });
  curve.values.forEach((one, k) => one !== null && pen.dot(x(at[k]), y(one), 2, { fill: colours.grey }));
  const here = sweep.at[sweep.axes.indexOf(axis)];
  upright(pen, box, x(at[here]), { stroke: colours.ink, width: 0.8, alpha: 0.7 });
  if (curve.values[here] !== null) pen.dot(x(at[here]), y(curve.values[here]), 4, { fill: colour });
  across(pen, box, box.bottom, { stroke: colours.grey, width: 0.8 });
  const every = Math.max(1, Math.ceil(axis.values.length / 6));
  axis.values.forEach((one, k) => {
    if (k % every) return;
    const words = typeof one === "number" ? shown(one) : String(one).slice(0, 8);
    pen.text(x(at[k]), box.bottom + 14, words, { fill: colours.grey, size: 10, align: "center" });
  });
}

/** The point of a sweep at a share of the axis of its panel, as a text. @param {Sweep} sweep */
export function pointAtShare(sweep, text, share) {
  const { curve } = curveOf(sweep, text);
  if (!curve) return null;
  const a = sweep.axes.findIndex(({ name }) => name === curve.along);
  const { at } = places(sweep.axes[a].values);
  const [low, high] = [Math.min(...at), Math.max(...at)];
  const edge = 0.04 * (high - low) || 0.5;
  const wanted = low - edge + share * (high - low + 2 * edge);
  const k = at.reduce((best, one, j) => (Math.abs(one - wanted) < Math.abs(at[best] - wanted) ? j : best), 0);
  return sweep.at.with(a, k).join(",");
}
