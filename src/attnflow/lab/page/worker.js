/**
 * The engine in a worker. Messages in: {start: setting}, {set: change, t}, {credit: t}, worked on in their order. Out:
 * {frame}, one for each credit, {begun} of a recording, {error}. Work goes on in slices, so that a new start does not wait for heavy frames.
 */

import { Engine } from "./engine.js";
import { Recording } from "./recording.js";

/** Milliseconds of work between two looks at the messages. */
const SLICE = 30;
let engine = null;
let waiting = [];
let working = false;
const again = new MessageChannel();
again.port1.onmessage = work;

onmessage = ({ data }) => {
  if (data.start) {
    waiting = [];
    attempt(() => (engine = data.start === "recording" ? new Recording() : new Engine(data.start)));
    if (engine?.facts) postMessage({ begun: engine.facts });
    return;
  }
  waiting.push(data);
  if (working) return;
  working = true;
  work();
};

function work() {
  const stop = performance.now() + SLICE;
  while (waiting.length && performance.now() < stop) attempt(one);
  working = waiting.length > 0;
  if (working) again.port2.postMessage(null);
}

/** One step towards the first frame that is wanted, or one change. */
function one() {
  const { set, t, credit } = waiting[0];
  if (set) engine.set(set, t);
  else if (engine.towards(credit)) postMessage({ frame: engine.frame(credit) });
  else return;
  waiting.shift();
}

function attempt(action) {
  try {
    action();
  } catch (error) {
    waiting = [];
    postMessage({ error: String(error) });
  }
}
