/** Form controls made from the table of the state, each with its label. */

import { DYNAMIC, START, TABLE } from "./state.js";

/** Positions of the slider of beta, and milliseconds between two changes while it is dragged. */
const STOPS = 1000;
const PAUSE = 150;

/**
 * Fill the fieldsets of the page; `onChange(key, value)` is called with what the reader chose, as it is given.
 * @returns {(state: object, notes: Record<string, string>) => void} shows a state in the controls, and beside each what
 *   was refused or limited; notes on settings without a control stand in a place of their own
 */
export function controls(onChange) {
  const shows = {};
  const into = (id, keys) => {
    const place = document.getElementById(id);
    for (const key of keys) shows[key] = withNote(place, key, control(place, key, onChange));
  };
  into("start-controls", Object.keys(START));
  into("first-controls", DYNAMIC);
  into(
    "second-controls",
    DYNAMIC.map((key) => `${key}2`),
  );
  into("view-controls", ["restart", "compare", "shown", "colour", "accuracy", "theme"]);
  into("source-control", ["source"]);
  into("remote-controls", ["run", "axes"]);
  into("remote-second", ["run2"]);
  into("speed-control", ["speed"]);
  const generalNotes = document.getElementById("notes");
  return (state, notes) => {
    for (const show of Object.values(shows)) show(state, notes);
    generalNotes.textContent = Object.keys(notes).filter((key) => !shows[key]).map((key) => notes[key]).join(" ");
  };
}

/** A control with a place beside it that says what was refused or limited. */
function withNote(place, key, show) {
  const note = element(place, "span", { className: "note", id: `${key}-note`, role: "alert" });
  document.getElementById(key).setAttribute("aria-describedby", note.id);
  return (state, notes) => {
    show(state);
    note.textContent = notes[key] ?? "";
  };
}

function control(place, key, onChange) {
  const entry = TABLE[key];
  const label = element(place, "label", { htmlFor: key, textContent: entry.label });
  if (entry.hint) label.title = entry.hint;
  if (entry.type === "choice") {
    const select = element(place, "select", { id: key });
    for (const [value, words] of Object.entries(entry.options))
      element(select, "option", { value, textContent: words });
    select.onchange = () => onChange(key, select.value);
    return (state) => (select.value = state[key]);
  }
  if (key.startsWith("beta")) return slider(place, key, entry, onChange);
  const input = element(place, "input", { id: key, type: entry.type === "text" ? "text" : "number" });
  if (entry.type !== "text") Object.assign(input, { min: entry.low, max: entry.high, step: entry.step ?? 1 });
  else Object.assign(input, { autocomplete: "off", spellcheck: false });
  if (entry.hint) input.title = entry.hint;
  if (key.startsWith("run")) input.setAttribute("list", "runs");
  input.onchange = () => onChange(key, input.value);
  return (state) => (input.value = state[key]);
}

/** A slider whose cube is beta, so that small values have room, and a field for the exact number. */
function slider(place, key, entry, onChange) {
  const both = element(place, "span", { className: "slider" });
  const range = element(both, "input", { id: key, type: "range" });
  const exact = element(both, "input", { type: "number", min: entry.low, max: entry.high, step: entry.step });
  exact.setAttribute("aria-label", `${entry.label}, exact`);
  cubed(range, entry.high, (value) => {
    exact.value = value;
    onChange(key, value);
  });
  exact.onchange = () => onChange(key, exact.value);
  return (state) => {
    range.value = stopOf(state[key], entry.high);
    range.setAttribute("aria-valuetext", `${entry.label} = ${state[key]}`);
    exact.value = state[key];
  };
}

/** Make an input a slider up to `high`; `onValue(value, live)` is told while it is dragged, a few times a second. */
export function cubed(range, high, onValue) {
  Object.assign(range, { min: 0, max: STOPS, step: 1 });
  const chosen = () => Number((high * (range.value / STOPS) ** 3).toPrecision(3));
  let last = 0;
  range.onchange = () => onValue(chosen(), false);
  range.oninput = () => {
    if (performance.now() - last < PAUSE) return;
    last = performance.now();
    onValue(chosen(), true);
  };
}

/** The place of a value on such a slider. */
export function stopOf(value, high) {
  return Math.round(STOPS * Math.cbrt(value / high));
}

/** An element of this kind with these properties, at the end of a place. */
export function element(place, kind, properties) {
  const made = Object.assign(document.createElement(kind), properties);
  place.append(made);
  return made;
}
