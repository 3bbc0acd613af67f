/** The state of the page as a typed table, and as the part of its address after #. */

import { noteOnPoints, noteOnWords, pointPositions, pointText, wordPositions, wordsOf } from "./own.js";

/** Numbers of tokens at most, by space. */
export const MOST = { circle: 100000, sphere: 20000 };
/** The time at which the page stops: later merges are for `solve_long`. */
export const END = 1e4;
/** The latest time that Python or a recording can have. */
const LATEST = 1e300;
/** Letters of a text that an address can hold. */
const LONGEST = 20000;
/** Changes of beta that an address can hold. */
export const CHANGES = 150;

/**
 * @typedef {{ label: string, type: "number" | "whole" | "choice" | "text", fallback: any, low?: number, high?: number,
 *   step?: number, options?: Record<string, string>, hint?: string }} Entry
 */

/** @type {Record<string, Entry>} */
const DYNAMICS = {
  beta: { label: "β", type: "number", fallback: 9, low: 0, high: 400, step: 0.1, hint: "inverse temperature" },
  model: {
    label: "attention",
    type: "choice",
    fallback: "SA",
    options: { SA: "softmax (SA)", USA0: "unnormalised (USA0)" },
  },
  mask: { label: "mask", type: "choice", fallback: "all", options: { all: "everyone", causal: "causal" } },
  value: { label: "V", type: "text", fallback: "I", hint: "I, -I, or a matrix by rows such as 1,0,0,-1" },
  noise: { label: "noise κ", type: "number", fallback: 0, low: 0, high: 1, step: 0.001, hint: "√(2κ) dB" },
};

/** @type {Record<string, Entry>} */
export const START = {
  space: { label: "space", type: "choice", fallback: "sphere", options: { circle: "circle S¹", sphere: "sphere S²" } },
  n: { label: "tokens", type: "whole", fallback: 400, low: 2, high: 100000 },
  seed: { label: "seed", type: "whole", fallback: 0, low: 0, high: 2 ** 32 - 1 },
  start: { label: "start", type: "choice", fallback: "uniform", options: { uniform: "iid uniform", ring: "ring", words: "a sentence", points: "painted points" } },
  words: { label: "sentence", type: "text", fallback: "the cat saw the dog and the dog saw the cat", hint: "a token a word" },
  points: { label: "points", type: "text", fallback: "0,0,700,300,-900,200,1500,-400", hint: "paint on the picture" },
  jitter: { label: "jitter", type: "number", fallback: 0.01, low: 0, high: 1, step: 0.001, hint: "of a ring, radians" },
  zipf: {
    label: "Zipf exponent",
    type: "number",
    fallback: 0,
    low: 0,
    high: 3,
    step: 0.1,
    hint: "masses ∝ rank^(−s); 0 makes them equal",
  },
};

/** Where frames come from, and what an engine in Python is asked for. @type {Record<string, Entry>} */
const SOURCE = {
  source: {
    label: "computed by",
    type: "choice",
    fallback: "page",
    options: { page: "this page", recording: "a recording: the staircase", python: "Python" },
  },
  spec: { label: "specification", type: "text", fallback: "" },
  run: { label: "run", type: "text", fallback: "", hint: "a run, sweep or stream that `attnflow lab RUN` lists; empty: the form" },
  at: { label: "point", type: "text", fallback: "", hint: "of a sweep: the number of the value along each axis" },
};

/** How it is looked at. @type {Record<string, Entry>} */
const LOOK = {
  axes: { label: "coordinates", type: "text", fallback: "principal", hint: "principal, or three such as 0,1,4" },
  curve: { label: "curve", type: "text", fallback: "", hint: "of a sweep: variable|axis" },
};

/** @type {Record<string, Entry>} */
const VIEW = {
  restart: { label: "another β", type: "choice", fallback: "off", options: { off: "goes on", on: "starts anew" } },
  compare: { label: "second setting", type: "choice", fallback: "off", options: { off: "off", on: "on" } },
  shown: { label: "panels show", type: "choice", fallback: "A", options: { A: "A", B: "B" } },
  colour: { label: "tokens by", type: "choice", fallback: "cluster", options: { cluster: "cluster", word: "word" } },
  speed: {
    label: "speed",
    type: "choice",
    fallback: "1",
    options: { 0.25: "¼ ×", 0.5: "½ ×", 1: "1 ×", 2: "2 ×", 4: "4 ×" },
  },
  accuracy: {
    label: "error per step",
    type: "choice",
    fallback: "1e-4",
    options: { "1e-4": "10⁻⁴", "1e-6": "10⁻⁶", "1e-8": "10⁻⁸" },
  },
  theme: {
    label: "colours",
    type: "choice",
    fallback: "auto",
    options: { auto: "auto", light: "light", dark: "dark" },
  },
  t: { label: "time", type: "number", fallback: 0, low: 0, high: LATEST },
  yaw: { label: "yaw", type: "number", fallback: 0.5, low: -7, high: 7 },
  pitch: { label: "pitch", type: "number", fallback: 0.35, low: -1.57, high: 1.57 },
  tour: { label: "tour", type: "text", fallback: "" },
  then: { label: "later β", type: "text", fallback: "" },
  then2: { label: "later β of B", type: "text", fallback: "" },
};

/** The second setting begins colder, so that there is something to compare. */
const { spec, run, at } = SOURCE;
const SECOND = Object.fromEntries(Object.entries({ ...DYNAMICS, spec, run, at }).map(([key, entry]) => [`${key}2`, entry]));
SECOND.beta2 = { ...DYNAMICS.beta, fallback: 25 };
export const DYNAMIC = Object.keys(DYNAMICS);
/** @type {Record<string, Entry>} */
export const TABLE = { ...SOURCE, ...LOOK, ...START, ...DYNAMICS, ...SECOND, ...VIEW };
/** Settings that begin a flow of another source. */
export const SOURCES = [...Object.keys(SOURCE), "axes", "spec2", "run2", "at2"];

/**
 * The value that a setting takes when a reader asks for `input`. What cannot be read leaves the setting as it is in
 * `state`, what is out of range becomes the end of the range. `notes[key]` then says so; else it is removed.
 */
export function accepted(key, input, state, notes = {}) {
  const { type, options } = TABLE[key];
  delete notes[key];
  const note = (reason, value = state[key]) => {
    notes[key] = `${reason}: ${TABLE[key].label} = ${value === "" ? "none" : value}.`;
    return value;
  };
  if (type === "text") return acceptedText(key, String(input), state, note, notes);
  if (type !== "choice") return acceptedNumber(key, String(input ?? "").trim(), state, note);
  return Object.hasOwn(options, input) ? String(input) : note(`${quoted(input)} is none of ${Object.keys(options).join(", ")}`);
}

function acceptedNumber(key, text, state, note) {
  const { type, low, high } = TABLE[key];
  const number = Number(text);
  if (!text) return note("No number was given");
  if (Number.isNaN(number)) return note(`${quoted(text)} is no number`);
  const highest = key === "n" ? MOST[state.space] : key === "t" && state.source === "page" ? END : high;
  const reason = highest === high ? "" : key === "n" ? ` tokens, the most on the ${state.space}` : ", where this page stops";
  if (number < low) return note(`${number} is below ${low}`, low);
  if (number > highest) return note(`${number} is above ${highest}${reason}`, highest);
  if (type === "whole" && !Number.isInteger(number)) return note(`${number} is not whole`, Math.round(number));
  return number;
}

function acceptedText(key, text, state, note, notes) {
  const trimmed = text.trim();
  const d = dimension(state);
  if (text.length > LONGEST) return note(`More than ${LONGEST} letters are refused`);
  if (!trimmed && TABLE[key].fallback) return note("Nothing was given");
  switch (key.replace(/2$/, "")) {
    case "value": {
      const plain = trimmed.replaceAll("−", "-");
      if (plain === "I" || plain === "-I") return plain;
      const numbers = plain.split(/[\s,;]+/).map(Number);
      if (numbers.length === d * d && numbers.every((number) => Math.abs(number) <= 10)) return numbers.join(",");
      return note(`${quoted(text)} is no matrix; give I, -I or ${d * d} numbers from -10 to 10, by rows`);
    }
    case "then": {
      const [changes, count] = [changesOf(trimmed), trimmed ? trimmed.split(",").length : 0];
      if (count > CHANGES) return note(`More than ${CHANGES} changes of β are refused`);
      const value = changes.map(({ t, beta }) => `${t}:${beta}`).join(",");
      return changes.length === count ? value : note(`${count - changes.length} of ${count} changes of β cannot be read`, value);
    }
    case "axes":
      if (trimmed === "principal" || /^\d+([\s,;]+\d+){1,2}$/.test(trimmed)) return trimmed;
      return note(`${quoted(text)} names no coordinates; give principal, or two or three such as 0,1,4`);
    case "spec":
      return !trimmed || read(trimmed) ? trimmed : note("This address has a specification that cannot be read");
    case "words":
    case "points": {
      const remark = key === "words" ? noteOnWords(trimmed) : noteOnPoints(trimmed, d);
      if (remark) notes[key] = remark;
    }
  }
  return trimmed;
}

/** What a reader gave, short and in quotes. */
function quoted(input) {
  return `“${String(input).slice(0, 30)}”`;
}

/** The changes of beta of a text such as 3.2:25,8:4, in the order of their times. */
export function changesOf(text) {
  return text
    .split(",")
    .filter((one) => /^[\d.e+-]+:[\d.e+-]+$/.test(one))
    .map((one) => one.split(":").map(Number))
    .filter(([t, beta]) => t >= 0 && t <= LATEST && beta >= 0 && beta <= TABLE.beta.high)
    .map(([t, beta]) => ({ t, beta }))
    .sort((a, b) => a.t - b.t);
}

/** Such a text with another beta from the time t on, and no later change. */
export function withChange(text, t, beta) {
  const changes = [...changesOf(text).filter((one) => one.t < t), { t, beta }];
  return changes.map((one) => `${one.t}:${one.beta}`).join(",");
}

/** The text of painted points with more of them; the first ones take the place of those that were there unpainted. */
export function withPoints({ points, space }, more) {
  const before = points === START.points.fallback ? [] : [points];
  return [...before, ...more.map((one) => pointText(one, dimension({ space })))].join(",");
}

/** The state that an address says; `notes` gets a sentence for every part of it that is refused or limited. */
export function parsed(hash, notes = {}) {
  const state = Object.fromEntries(Object.entries(TABLE).map(([key, { fallback }]) => [key, fallback]));
  const inputs = {};
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const [key, text = ""] = part.split("=");
    if (Object.hasOwn(TABLE, key)) inputs[key] = decoded(text);
    else notes[key] = `${quoted(key)} is no setting of this page.`;
  }
  // in the order of the table: the space and the source come before what depends on them
  for (const key of Object.keys(TABLE)) if (key in inputs) state[key] = accepted(key, inputs[key], state, notes);
  return state;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // a percent sign that means nothing
  }
}

/** The part of the address after #, with what differs from the defaults alone. */
export function written(state) {
  const parts = Object.keys(TABLE).filter((key) => state[key] !== TABLE[key].fallback);
  const plain = (text) => encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3A", ":");
  return `#${parts.map((key) => `${key}=${plain(state[key])}`).join("&")}`;
}

/** The state with numbers of tokens, points and matrices that its space allows; `notes` says what was changed. */
export function consistent(state, notes) {
  const fitting = { ...state };
  for (const key of ["n", "points", "value", "value2"])
    fitting[key] = accepted(key, state[key], { ...state, [key]: TABLE[key].fallback }, notes);
  return fitting;
}

export function dimension(state) {
  return state.space === "circle" ? 2 : 3;
}

/** The positions of a start of one's own; null for others. Points that make no token are those of the beginning. */
function givenOf({ start, words, points, seed }, d) {
  if (start === "words") return wordPositions(wordsOf(words), d, seed);
  if (start !== "points") return null;
  const found = pointPositions(points, d);
  return found.length ? found : pointPositions(START.points.fallback, d);
}

/** What the engine needs; `second` chooses the second dynamics. @returns {import("./engine.js").Setting} */
export function settingOf(state, second) {
  const own = (key) => state[second ? `${key}2` : key];
  const d = dimension(state);
  const text = own("value");
  const unit = Array.from({ length: d * d }, (_, k) => (k % (d + 1) ? 0 : -1));
  const { n, seed, start, jitter, zipf } = state;
  const value = text === "I" ? null : text === "-I" ? unit : text.split(",").map(Number);
  const dynamics = {
    beta: own("beta"),
    model: own("model"),
    causal: own("mask") === "causal",
    kappa: own("noise"),
    value,
  };
  const setting = { d, n, seed, start, jitter, zipf, ...dynamics, tol: Number(state.accuracy) };
  const given = givenOf(state, d);
  return given ? { ...setting, n: given.length / d, given } : setting;
}

/** What Python is asked for before the reader has chosen. */
const FIRST = {
  tokens: { name: "uniform", n: 200, seed: 0, space: { name: "sphere", dim: 6 } },
  field: { name: "attention", beta: 9 },
  solve: { until: 40 },
};

/** Tables of a specification that say where a flow starts. */
const STARTS = ["tokens", "density", "cells"];

/**
 * The specification of the form; the first one where none was written. That of the second flow has the start of the
 * first one, and unless the reader wrote it another beta.
 */
export function specOf(state, second = false) {
  const first = read(state.spec) ?? FIRST;
  if (!second) return first;
  const { field } = first;
  const other = typeof field?.beta === "number" ? { ...first, field: { ...field, beta: SECOND.beta2.fallback } } : first;
  const same = STARTS.filter((key) => key in first).map((key) => [key, first[key]]);
  return { ...(read(state.spec2) ?? other), ...Object.fromEntries(same) };
}

/** The beta of a changed specification where nothing else of the form differs and no run is shown; else null. */
export function otherBeta(state, spec, second) {
  const before = specOf(state, second);
  const beta = spec.field?.beta;
  const same = JSON.stringify({ ...before, field: { ...before.field, beta } }) === JSON.stringify(spec);
  const fits = typeof beta === "number" && beta >= 0 && beta <= DYNAMICS.beta.high;
  return same && fits && !state[second ? "run2" : "run"] ? beta : null;
}

function read(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** The same state with the second dynamics as the first ones: what B shows, alone. */
export function asFirst(state) {
  const own = Object.keys(SECOND).concat("then2").map((key) => [key.slice(0, -1), state[key]]);
  return { ...state, ...Object.fromEntries(own), compare: "off" };
}
