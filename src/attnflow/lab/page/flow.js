/** One flow on the page: where its frames come from, and what is kept of it. */

import { drawForm } from "./forms.js";
import { History } from "./history.js";
import { connection, tokenOfPage } from "./socket.js";
import { workerSource } from "./source.js";
import { wordsOf } from "./own.js";
import { masses } from "./starts.js";
import { changesOf, settingOf, specOf } from "./state.js";

/**
 * @typedef {object} Run one flow
 * @property {import("./engine.js").Setting} setting
 * @property {History} history
 * @property {import("./engine.js").Frame[]} arrived frames that wait for those of the other flow
 * @property {string} colour
 * @property {import("./predict.js").Prediction | null} prediction at the cursor
 * @property {boolean} begun whether frames can be asked for
 * @property {string[] | null} labels words of the tokens
 * @property {boolean} second whether it has the second dynamics
 * @property {{ t: number, beta: number }[]} changes of beta that the address asks for
 * @property {Float32Array} sizes radii of tokens relative to that of the mean mass
 * @property {ReturnType<typeof workerSource>} source
 *
 * @typedef {{ onFrame: (run: Run, frame: object) => void, onError: (words: string) => void, onBegun: () => void,
 *   onEnded: (words: string) => void, onBack: () => void, onSpec: (spec: object) => void }} Hear
 */

/** The connection to the server, and what it offers. */
let link = null;
let offered = null;
let listener = null;

/** A flow by the engine of the page; `second` chooses the second dynamics. @param {Hear} hear @returns {Run} */
export function begin(state, second, hear) {
  leave();
  const run = blank(settingOf(state, second), second);
  run.changes = changesOf(state[second ? "then2" : "then"]);
  run.sizes = sizesOf(masses(run.setting));
  run.labels = state.start === "words" && run.setting.given ? wordsOf(state.words) : null;
  run.begun = true;
  run.source = workerSource({
    onFrame: (frame) => hear.onFrame(run, frame),
    onError: (words) => hear.onError(`The engine stopped: ${words}`),
  });
  run.source.start(run.setting);
  return run;
}

/** A flow by Python, or a recording. @param {Hear} hear @returns {Run} */
export function remote(state, hear) {
  const run = blank({ d: 3, n: 1, seed: 0 }, false);
  const own = {
    onFrame: (frame) => hear.onFrame(run, frame),
    onError: hear.onError,
    onEnded: hear.onEnded,
    onBegun: (facts) => {
      settle(run, facts);
      hear.onBegun();
    },
  };
  if (state.source === "recording") {
    leave();
    run.source = { ...workerSource(own), own: true };
    run.source.start("recording");
    return run;
  }
  if (!tokenOfPage()) {
    run.source = { own: true, start: () => {}, set: () => {}, credit: () => {}, close: () => {} };
    setTimeout(() => hear.onError("Python is not there: see “What Python adds”."));
    return run;
  }
  const spec = specOf(state);
  listener = { ...own, onBack: hear.onBack, onForms: (forms, runs) => offer(forms, runs, state, hear) };
  link ??= connection(Object.fromEntries(NEWS.map((name) => [name, (...what) => listener?.[name](...what)])));
  run.source = { ...link, close: () => {} };
  if (offered) offer(offered.forms, offered.runs, state, hear);
  const axes = state.axes === "principal" ? "principal" : state.axes.split(/[\s,;]+/).map(Number);
  run.source.start(state.run ? { run: state.run, axes } : { spec, axes });
  return run;
}

const NEWS = ["onFrame", "onError", "onEnded", "onBegun", "onBack", "onForms"];

/** Leave the server, so that its process ends. */
function leave() {
  link?.close();
  [link, listener] = [null, null];
}

/** Show the form and the runs that the server offers. */
function offer(forms, runs, state, hear) {
  offered = { forms, runs };
  const place = document.getElementById("form");
  if (place.contains(document.activeElement) && place.dataset.shown === state.spec) return;
  place.dataset.shown = state.spec;
  drawForm(place, forms, specOf(state), hear.onSpec);
  const list = document.getElementById("runs");
  list.replaceChildren(...runs.map((name) => Object.assign(document.createElement("option"), { value: name })));
}

/** @returns {Run} */
function blank(setting, second) {
  const history = new History(setting.n, setting.d);
  const rest = { arrived: [], prediction: null, colour: "", changes: [], labels: null, begun: false, source: null };
  return { setting, history, second, sizes: new Float32Array(setting.n).fill(1), ...rest };
}

/** What is known of a flow when it begins. */
function settle(run, facts) {
  const given = facts.masses;
  const d = Math.min(3, Math.max(2, facts.shown ?? facts.d));
  run.setting = facts.beta === undefined ? { ...facts, d, full: facts.d, remote: true, seed: 0 } : facts;
  run.history = new History(facts.n, d);
  run.labels = facts.labels ?? null;
  run.sizes = given ? sizesOf(given) : new Float32Array(facts.n).fill(1);
  run.begun = true;
}

/** Radii of tokens relative to that of the mean mass. */
export function sizesOf(given) {
  return Float32Array.from(given, (one) => Math.min(3, Math.max(0.3, Math.sqrt(one * given.length))));
}
