/** One flow on the page: where its frames come from, and what is kept of it. */

import { History } from "./history.js";
import { workerSource } from "./source.js";
import { wordsOf } from "./own.js";
import { masses } from "./starts.js";
import { changesOf, settingOf } from "./state.js";

/**
 * @typedef {object} Run one flow
 * @property {import("./engine.js").Setting} setting
 * @property {History} history
 * @property {import("./engine.js").Frame[]} arrived frames that wait for those of the other flow
 * @property {string} colour
 * @property {import("./predict.js").Prediction | null} prediction at the cursor
 * @property {boolean} begun whether frames can be asked for
 * @property {boolean} ended whether a source with times of its own has given its last frame
 * @property {number} owed frames of such a source under way
 * @property {number} index of the frame at the cursor
 * @property {string[] | null} labels words of the tokens
 * @property {Uint8Array | null} words the number of the word of each token
 * @property {boolean} second whether it has the second dynamics
 * @property {{ t: number, beta: number }[]} changes of beta that the address asks for
 * @property {Float32Array} sizes radii of tokens relative to that of the mean mass
 * @property {ReturnType<typeof workerSource>} source
 *
 * @typedef {{ onFrame: (run: Run, frame: object) => void, onError: (words: string) => void,
 *   onBegun: (run: Run) => void, onEnded: (run: Run, words: string) => void, onBack: () => void,
 *   onChanged: (run: Run, change: { t: number, beta: number, planned: boolean }) => void,
 *   onSpec: (spec: object, second: boolean, live: boolean) => void, onChoice: (key: string, text: string) => void }} Hear
 */

/** A flow by the engine of the page; `second` chooses the second dynamics. @param {Hear} hear @returns {Run} */
export function begin(state, second, hear) {
  const run = blank(settingOf(state, second), second);
  run.changes = changesOf(state[second ? "then2" : "then"]);
  run.sizes = sizesOf(masses(run.setting));
  name(run, state.start === "words" && run.setting.given ? wordsOf(state.words) : null);
  run.begun = true;
  run.source = workerSource({
    onFrame: (frame) => hear.onFrame(run, frame),
    onError: (words) => hear.onError(`The engine stopped: ${words}`),
  });
  run.source.start(run.setting);
  return run;
}

/** A recording. @param {Hear} hear @returns {Run} */
export function recorded(hear) {
  const run = blank({ d: 2, n: 1, seed: 0 }, false);
  const own = {
    onFrame: (frame) => hear.onFrame(run, frame),
    onError: hear.onError,
    onBegun: (facts) => {
      settle(run, facts);
      hear.onBegun(run);
    },
  };
  run.source = { ...workerSource(own), own: true };
  run.source.start("recording");
  return run;
}

/** A flow that never begins, where no server is. @param {Hear} hear @returns {Run} */
export function absent(second, hear) {
  const none = () => {};
  setTimeout(() => hear.onError("Python is not there: this page was not opened by `attnflow lab` with its extra `lab`."));
  return { ...blank({ d: 3, n: 1, seed: 0 }, second), source: { own: true, start: none, set: none, credit: none, close: none } };
}

/** @returns {Run} */
export function blank(setting, second) {
  const history = new History(setting.n, setting.d);
  const rest = { arrived: [], prediction: null, colour: "", changes: [], labels: null, words: null, source: null, index: 0 };
  const under = { begun: false, ended: false, owed: 0 };
  return { setting, history, second, sizes: new Float32Array(setting.n).fill(1), ...rest, ...under };
}

/** Words of tokens, and the number of each word for colours: equal words are of one colour. */
function name(run, labels) {
  const known = [...new Set(labels?.map((word) => word.toLowerCase()))];
  run.labels = labels;
  run.words = labels && Uint8Array.from(labels, (word) => known.indexOf(word.toLowerCase()) % 240);
}

/** What is known of a flow when it begins. */
export function settle(run, facts) {
  const given = facts.masses;
  const d = Math.min(3, Math.max(2, facts.shown ?? facts.d));
  const plain = { model: facts.theory ?? "SA", causal: false, value: null, kappa: 0, start: "" };
  run.setting = facts.beta === undefined ? { ...facts, ...plain, d, full: facts.d, remote: true, seed: 0 } : facts;
  run.history = new History(facts.n, d);
  name(run, facts.labels ?? null);
  run.sizes = given ? sizesOf(given) : new Float32Array(facts.n).fill(1);
  [run.begun, run.ended, run.owed] = [true, false, 0];
}

/** Radii of tokens relative to that of the mean mass. */
export function sizesOf(given) {
  return Float32Array.from(given, (one) => Math.min(3, Math.max(0.3, Math.sqrt(one * given.length))));
}
