/** Forms made from what the server says of works and words: a specification that the reader fills in. */

import { cubed, element, stopOf } from "./controls.js";
import { TABLE } from "./state.js";

/** The largest beta of the slider. */
const BETA = TABLE.beta.high;

/**
 * @typedef {{ name: string, parts: string[], several: boolean, needed: boolean, apart?: boolean, default: any }} Entry
 * @typedef {{ kinds: Record<string, Entry[]>, words: Record<string, Record<string, Entry[]>>,
 *   examples: Record<string, object> }} Forms
 */

/** The kind of work of a specification. @param {Forms} forms */
export function kindOf(forms, spec) {
  return Object.keys(forms.kinds).find((kind) => kind in spec) ?? "solve";
}

/** The same specification as another kind of work: parts that both have stay. @param {Forms} forms */
export function asKind(forms, spec, kind) {
  const old = spec[kindOf(forms, spec)] ?? {};
  const made = { [kind]: {} };
  for (const { name, apart, needed, parts } of forms.kinds[kind]) {
    if (apart) made[name] = spec[name] ?? first(forms, parts);
    else if (name in old) made[kind][name] = old[name];
    else if (needed) made[kind][name] = 10;
  }
  return made;
}

/** The first word of a part with what it needs. @param {Forms} forms @param {string[]} parts */
function first(forms, parts) {
  const part = parts[0];
  return withNeeds(forms, part, Object.keys(forms.words[part])[0]);
}

/** A word with the arguments that it needs. */
function withNeeds(forms, part, name) {
  const made = { name };
  for (const one of forms.words[part][name])
    if (one.needed) made[one.name] = one.parts.length && !one.several ? first(forms, one.parts) : 2;
  return made;
}

/**
 * Draw the form of a specification; `onChange(spec, live)` gets a changed copy, `live` while a slider is dragged. The
 * form of the second flow has no start.
 * @param {HTMLElement} place @param {Forms} forms
 */
export function drawForm(place, forms, spec, onChange, second = false) {
  place.replaceChildren();
  const kind = kindOf(forms, spec);
  const change = (path, value, live = false) => onChange(changed(spec, path, value), live);
  const grid = element(place, "div", { className: "grid" });
  const id = second ? "form2" : "form";
  change.id = id;
  choice(grid, "work", `${id}-kind`, Object.keys(forms.kinds), kind, (name) => onChange(asKind(forms, spec, name)));
  const named = Object.keys(forms.examples);
  if (!second)
    choice(grid, "example", `${id}-example`, ["", ...named], "", (name) => name && onChange(forms.examples[name]));
  for (const entry of forms.kinds[kind].filter(({ name, apart }) => !second || !apart || name === "field")) {
    const path = entry.apart ? [entry.name] : [kind, entry.name];
    const value = entry.apart ? spec[entry.name] : spec[kind]?.[entry.name];
    field(grid, place, forms, entry, path, value, change);
  }
}

/** One entry: a value in the grid, or a part in a fieldset of its own. */
function field(grid, place, forms, entry, path, value, change) {
  const parts = entry.parts.filter((part) => forms.words[part]);
  const id = `${change.id}-${path.join("-")}`;
  const isBeta = path.join(".") === "field.beta" && typeof value === "number";
  if (isBeta) return beta(grid, entry, id, value, (one, live) => change(path, one, live));
  if (!parts.length || entry.several || isValue(value)) return input(grid, entry, id, value, (one) => change(path, one));
  const names = parts.flatMap((part) => Object.keys(forms.words[part]));
  const given = value?.name ?? entry.default?.name ?? "";
  choice(grid, entry.name, id, entry.needed ? names : ["", ...names], given, (name) => {
    const part = parts.find((one) => name in forms.words[one]);
    change(path, name && part ? withNeeds(forms, part, name) : undefined);
  });
  const part = parts.find((one) => given in forms.words[one]);
  const inside = part ? forms.words[part][given] : [];
  if (!inside.length || (!value && !entry.needed)) return;
  const box = element(place, "details", { open: entry.needed });
  element(box, "summary", { textContent: `${entry.name}: ${given}` });
  const inner = element(box, "div", { className: "grid" });
  for (const one of inside) field(inner, box, forms, one, [...path, one.name], value?.[one.name], change);
}

function isValue(value) {
  return value !== undefined && value !== null && (typeof value !== "object" || Array.isArray(value));
}

/** Beta: what is written, and a slider that changes it while tokens move. */
function beta(grid, entry, id, value, change) {
  element(grid, "label", { htmlFor: id, textContent: "β" });
  const both = element(grid, "span", { className: "slider" });
  const range = element(both, "input", { id: `${id}-slider`, type: "range" });
  range.setAttribute("aria-label", "β");
  const box = textBox(both, grid, id, String(value), (one) => change(one, false));
  cubed(range, BETA, (one, live) => {
    box.value = String(one);
    change(one, live);
  });
  range.value = String(stopOf(value, BETA));
}

function input(grid, entry, id, value, change) {
  element(grid, "label", { htmlFor: id, textContent: entry.name });
  const shown = (one) => (typeof one === "string" ? one : one === undefined || one === null ? "" : JSON.stringify(one));
  textBox(grid, grid, id, shown(value), change).placeholder = shown(entry.default);
}

/** A field for a text, with a place in the grid that says why a number in it is refused. */
function textBox(place, grid, id, value, change) {
  const box = element(place, "input", { id, type: "text", value, autocomplete: "off", spellcheck: false });
  const note = element(grid, "span", { className: "note", role: "alert" });
  box.onchange = () => {
    const isReadable = isExact(box.value);
    note.textContent = isReadable ? "" : "refused: this page holds whole numbers below 2^53, others below 10^308.";
    if (isReadable) change(read(box.value));
  };
  return box;
}

/** Whether the page can hold the numbers of a text: whole ones below 2^53, others below 10^308. */
export function isExact(text) {
  const numbers = text.match(/\d+(\.\d+)?([eE][+-]?\d+)?/g) ?? [];
  return numbers.every((one) => (/[.eE]/.test(one) ? Number.isFinite(Number(one)) : Number.isSafeInteger(Number(one))));
}

/** A value as JSON says it, else a text; nothing where nothing is written. */
export function read(text) {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  try {
    return JSON.parse(trimmed);
  } catch {
    return trimmed;
  }
}

function choice(grid, words, id, options, value, change) {
  element(grid, "label", { htmlFor: id, textContent: words });
  const select = element(grid, "select", { id });
  for (const one of options) element(select, "option", { value: one, textContent: one || "–" });
  select.value = value;
  select.onchange = () => change(select.value);
}

/** A copy of a table with another value at a path; undefined leaves the key out. */
export function changed(table, [key, ...rest], value) {
  const copy = { ...table };
  if (rest.length) copy[key] = changed(typeof copy[key] === "object" ? copy[key] : {}, rest, value);
  else if (value === undefined) delete copy[key];
  else copy[key] = value;
  return copy;
}
