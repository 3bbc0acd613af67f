/** Flows by the engine in Python: a connection for each, the form, choices of a sweep, run folders that it writes. */

import { element } from "./controls.js";
import { absent, blank, settle } from "./flow.js";
import { drawForm } from "./forms.js";
import { connection, tokenOfPage } from "./socket.js";
import { changesOf, specOf } from "./state.js";
import * as sweep from "./sweep.js";

/** What connections tell. */
const NEWS = ["onFrame", "onError", "onEnded", "onBegun", "onBack", "onForms", "onChanged"];
/** The connection of each of two flows, who listens to it, and what the server offers. */
const links = [null, null];
const listeners = [null, null];
let offered = null;

export const drawSweep = sweep.drawSweep;
export const pointAtShare = sweep.pointAtShare;

/** Whether a server with an engine gave this page. */
export function isServed() {
  return Boolean(tokenOfPage());
}

/**
 * A flow by Python; `second` chooses the second one.
 * @param {import("./flow.js").Hear} hear @returns {import("./flow.js").Run}
 */
export function python(state, second, hear) {
  const run = blank({ d: 3, n: 1, seed: 0 }, second);
  if (!isServed()) return absent(second, hear);
  const k = Number(second);
  const own = (key) => state[second ? `${key}2` : key];
  const named = (words) => (state.compare === "on" ? `${"AB"[k]}: ${words}` : words);
  if (state.compare !== "on") leave(1);
  listeners[k] = {
    onFrame: (frame) => hear.onFrame(run, frame),
    onError: (words) => {
      run.ended = true;
      hear.onError(named(words));
    },
    onEnded: (words) => hear.onEnded(run, named(words)),
    onBegun: (facts) => {
      settle(run, facts);
      sweep.drawChoices(place("sweep", second), facts.sweep, second ? "at2" : "at", state.curve, hear.onChoice);
      hear.onBegun(run);
    },
    onBack: hear.onBack,
    onForms: (forms, runs, undrawn) => offer((offered = { forms, runs, undrawn }), state, second, hear),
    onChanged: (what) => hear.onChanged(run, what),
  };
  links[k] ??= connection(Object.fromEntries(NEWS.map((name) => [name, (...what) => listeners[k]?.[name](...what)])));
  run.source = { ...links[k], close: () => {} };
  if (offered) offer(offered, state, second, hear);
  sweep.drawChoices(place("sweep", second), null);
  const axes = state.axes === "principal" ? "principal" : numbers(state.axes);
  const then = changesOf(own("then")).map(({ t, beta }) => [t, beta]);
  const name = own("run") || (second && !state.spec2 ? state.run : "");
  run.source.start(name ? { run: name, axes, at: numbers(own("at")) } : { spec: specOf(state, second), axes, then });
  return run;
}

function numbers(text) {
  return text.split(/[\s,;]+/).filter(Boolean).map(Number);
}

function place(name, second) {
  return document.getElementById(second ? `${name}-B` : name);
}

/** Leave the server, so that its processes end. */
export function leave(first = 0) {
  for (let k = first; k < links.length; k++) {
    links[k]?.close();
    [links[k], listeners[k]] = [null, null];
  }
}

/** Show the form of a flow, the runs that the server offers, and why it cannot draw other folders. */
function offer({ forms, runs, undrawn }, state, second, hear) {
  const form = place("form", second);
  const text = JSON.stringify(specOf(state, second));
  if (form.contains(document.activeElement) && form.dataset.shown === text) return;
  form.dataset.shown = text;
  drawForm(form, forms, specOf(state, second), (spec, live) => hear.onSpec(spec, second, live), second);
  const list = document.getElementById("runs");
  list.replaceChildren(...runs.map((name) => Object.assign(document.createElement("option"), { value: name })));
  const reasons = document.getElementById("undrawn");
  reasons.replaceChildren();
  if (!Object.keys(undrawn).length) return;
  const box = element(reasons, "details", {});
  element(box, "summary", { textContent: `folders that are not drawn: ${Object.keys(undrawn).length}` });
  for (const reason of Object.values(undrawn)) element(box, "p", { className: "hint", textContent: reason });
}

/** Show a beta that holds now in the form of a flow. */
export function showBeta(beta, second) {
  const box = /** @type {HTMLInputElement | null} */ (document.getElementById(`form${second ? 2 : ""}-field-beta`));
  if (box && box !== document.activeElement) box.value = String(beta);
}

/** Ask the server for a run folder; `told(words)` hears how it goes. */
export function writeFolder(name, what, told) {
  const end = (words) => {
    told(words);
    link.close();
  };
  const none = () => {};
  const hear = { onFrame: none, onForms: none, onChanged: none, onBack: none, onEnded: end, onError: end };
  const link = connection({ ...hear, onBegun: () => told("computing …") });
  link.start({ save: name, ...what });
}
