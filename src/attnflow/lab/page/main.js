/** The page: one or two flows, one time cursor, panels. */

import { shown, timeAt } from "./axes.js";
import { palette } from "./colours.js";
import { controls } from "./controls.js";
import { areComplete, catchUp, credit, goOn, latest } from "./credits.js";
import { begin, recorded, sizesOf } from "./flow.js";
import { keys } from "./keys.js";
import { saving } from "./out.js";
import { panel, scene } from "./panels.js";
import { predict } from "./predict.js";
import { leave, pointAtShare, python, showBeta } from "./remote.js";
import { PANELS } from "./save.js";
import { announcer, numbersOf, sentence, showTime } from "./sentence.js";
import { tours } from "./tours.js";
import { accepted, CHANGES, changesOf, consistent, DYNAMIC, END, otherBeta, parsed, SOURCES, START, withChange, withPoints, written } from "./state.js";

/** Frames that may be under way at the same time; more on the way to a time that the address asks for. */
const OUTSTANDING = 2;
const SEEKING = 12;
/** The first step of the cursor; a step is this share of 1 + t. */
const STEP = 0.02;
/** Milliseconds without a frame after which the page says that it computes. */
const PATIENCE = 1000;
/** Frames a second, at most, and milliseconds that a frame of a recording stays. */
const RATE = 30;
const LINGER = 150;
const STILL = "(prefers-reduced-motion: reduce)";

/** @type {(id: string) => any} */
const $ = (id) => document.getElementById(id);
/** What was refused or limited of what the reader or the address asked for, by setting. @type {Record<string, string>} */
let notes = {};
let state = parsed(location.hash, notes);
let colours = palette(state.theme);
/** @type {import("./flow.js").Run[]} */
let runs = [];
let index = 0; // of the frame at the cursor
let asked = []; // times of frames under way
let reached = 0; // the last time that was asked for
let playing = !matchMedia(STILL).matches;
let seeking = 0; // a time to go to before anything is shown
let stepping = false; // whether the reader asked for one frame
let dirty = true;
let painted = 0;
let moved = 0; // when the cursor went on
let keeping = 0;
let heard = 0; // when the last frame came
const strokes = []; // points since the mouse was pressed

const show = controls(change);
const guide = tours(visit);
const panels = PANELS.map((row) => panel($("panels"), row, press));
const scenes = ["A", "B"].map((name) => scene($(`scene-${name}`), turn, brush));
const announce = announcer($("said"));
const out = saving(() => ({ view: viewed(), scenes: viewed().runs.map(sceneOf), state, index }), () => (dirty = true));
globalThis.lab = { facts }; // for tests and benchmarks: what the page shows, as numbers

/** Begin again with what the state says. */
function restart() {
  for (const run of runs) run.source.close();
  [index, asked, reached, seeking] = [0, [], 0, state.t];
  complain("");
  const seconds = state.compare === "on" && state.source !== "recording" ? [false, true] : [false];
  if (state.source === "python") runs = seconds.map((b) => python(state, b, hear));
  else {
    leave();
    runs = state.source === "page" ? seconds.map((b) => begin(state, b, hear)) : [recorded(hear)];
  }
  document.body.classList.toggle("two", runs.length === 2);
  document.body.classList.toggle("words", state.source !== "recording" && (state.source === "python" || state.start === "words"));
  Object.assign(document.body.dataset, { source: state.source, run: state.run });
  if (state.source === "page") ask(0);
}

/** What flows tell the page. */
const hear = {
  onFrame: arrive,
  onError: (words) => complain(words),
  onBegun: (run) => {
    if (!run.second) [index, seeking] = [0, state.t];
    complain("");
    credit(run);
  },
  onEnded: (run, words) => {
    [run.ended, run.owed, dirty] = [true, 0, true];
    $("note").textContent = words;
  },
  onBack: () => restart(),
  onChanged,
  onChoice: change,
  onSpec,
};

/** Whether frames have times of their own. */
const own = () => runs[0].source.own;
/** Milliseconds between frames that have times of their own. */
const pause = () => (own() ? (state.source === "recording" ? LINGER : 900 / RATE) / Number(state.speed) : 0);
/** Frames under way, and whether no more will come. */
const underWay = () => (own() ? Math.max(...runs.map((run) => run.owed)) : asked.length);
const over = () => (own() ? areComplete(runs) : reached >= END && !asked.length);

/** Ask every flow for a frame at the time t. */
function ask(t) {
  asked.push(t);
  for (const run of runs) {
    // changes of beta that the address asks for take place at frames
    for (const { beta } of run.changes.filter((one) => one.t >= reached && one.t < t)) {
      run.source.set({ beta }, reached);
      live[run.second ? "beta2" : "beta"] = beta;
      show({ ...state, ...live }, notes);
    }
    run.source.credit(t);
  }
  reached = t;
}

function arrive(run, frame) {
  run.arrived.push(frame);
  heard = performance.now();
  if (own()) {
    run.owed -= 1;
    if (frame.last) run.ended = true;
    keepFrames([run]);
  } else
    while (runs.every(({ arrived }) => arrived.length)) {
      asked.shift();
      keepFrames(runs);
    }
}

/** Take one frame of each of these flows into their histories; a cursor at the end goes with the first flow. */
function keepFrames(some) {
  const { frames } = runs[0].history;
  const atEnd = index === frames.length - 1;
  const thinned = some.map((run) => run.history.push(run.arrived.shift()));
  dirty = true;
  if (some[0] !== runs[0]) return;
  const last = runs[0].history.frames.length - 1;
  if (last === 0 || (atEnd && (playing || seeking || stepping))) [index, stepping] = [last, false];
  else if (thinned[0]) index = Math.floor(index / 2);
  if (seeking && latest(runs[0]) >= seeking) [playing, seeking] = [false, 0];
}

/** The next frame: one that is kept, or a new one. */
function advance() {
  if (index < runs[0].history.frames.length - 1) {
    index += 1;
    dirty = true;
  } else if (over()) [playing, dirty] = [false, true];
  else askNext(OUTSTANDING);
}

/**
 * Ask for the next frame, if fewer than `most` are under way. Changes of beta, and the time that the address asks for,
 * fall on frames; of two flows with times of their own the one that is behind goes on.
 */
function askNext(most) {
  if (own()) return goOn(runs, most);
  if (asked.length >= most) return;
  const step = STEP * Number(state.speed) * (1 + reached);
  const stops = [END, seeking, ...runs.flatMap((run) => run.changes.map(({ t }) => t))].filter((t) => t > reached);
  if (stops.length) ask(Math.min(...stops, Number((reached + step).toPrecision(6))));
}

function tick(now) {
  if (now - painted >= 1000 / RATE - 4) {
    if (own()) catchUp(runs, runs[0].history.frames[index]?.t ?? -1, OUTSTANDING);
    if (seeking && own()) askNext(SEEKING);
    else while (seeking && reached < seeking && asked.length < SEEKING) askNext(SEEKING);
    if (seeking && over()) seeking = 0;
    if (playing && !seeking && now - moved >= pause()) {
      moved = now;
      advance();
    }
    if (dirty && runs[0].history.frames.length) {
      painted = now;
      dirty = false;
      paint();
    }
  }
  $("busy").hidden = !(underWay() || (own() && !runs[0].begun && !$("message").textContent)) || now - heard < PATIENCE;
  requestAnimationFrame(tick);
}

function paint() {
  index = Math.min(index, runs[0].history.frames.length - 1);
  const now = runs[0].history.frames[index].t;
  for (const run of runs) {
    run.index = run.second ? run.history.indexAt(now) : index;
    run.colour = run.second ? colours.second : colours.first;
    if (run.history.frames.length) run.prediction = predict(run.setting, run.history.frames, run.index);
  }
  const view = viewed();
  view.runs.forEach((run, k) => scenes[k].paint(sceneOf(run)));
  out.film(view, view.runs.map(sceneOf));
  for (const one of panels) one.paint(view);
  showTime(runs[0].history.frames, index, playing);
  view.runs.forEach((run, k) => ($(`facts-${"AB"[k]}`).textContent = sentence(run, runs.length)));
  const shownRun = view.runs[view.chosen];
  announce(shownRun.history.frames[shownRun.index]);
  if (!playing && !seeking) keep();
}

/** What there is to see: flows that have frames. */
function viewed() {
  const there = runs.filter((run) => run.history.frames.length);
  const chosen = there.length === 2 && state.shown === "B" ? 1 : 0;
  return { runs: there, chosen, colours, curve: state.curve };
}

function sceneOf(run) {
  const frame = run.history.frames[run.index];
  const sizes = frame?.weights ? sizesOf(frame.weights) : run.sizes;
  const painting = state.source === "page" && state.start === "points";
  const names = state.colour === "word" && run.words ? run.words : frame?.names;
  return { setting: run.setting, frame, eye: state, colours, sizes, names, labels: run.labels, painting, strokes };
}

/** What the page shows, as numbers. */
function facts() {
  return { playing, index, reached, flows: numbersOf(runs, index), painter: scenes[0].painter, state };
}

/** Put the state into the address, a little later and once for many changes; the time only while it stands still. */
function keep() {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    const t = playing ? 0 : (runs[0].history.frames[index]?.t ?? 0);
    history.replaceState(null, "", written({ ...state, t }));
  }, 200);
}

/** What a control says. */
function change(key, input) {
  const value = accepted(key, input, { ...state, ...live }, notes);
  if (value === (live[key] ?? state[key])) return redress();
  const before = state;
  state = { ...state, [key]: value, t: 0 };
  if (key === "space") state = consistent(state, notes);
  const second = key.endsWith("2");
  const name = second ? key.slice(0, -1) : key;
  if (name === "beta" && !own() && state.restart === "off" && runs[0].history.frames.length > 1) changeBeta(second, before);
  else if (SOURCES.includes(key) || key in START || DYNAMIC.includes(name) || key === "compare" || key === "accuracy") {
    if (SOURCES.includes(key)) playing = !matchMedia(STILL).matches;
    delete live[key];
    forgetChanges();
    restart();
  }
  redress();
}

/** What the form says. Another beta alone goes to the flow that runs; while a slider is dragged nothing else counts. */
function onSpec(spec, second, live) {
  const run = runs[Number(second)];
  const beta = otherBeta(state, spec, second);
  if (beta !== null && state.restart === "off" && run?.begun && !run.ended && run.history.frames.length > 1) {
    run.source.set({ beta });
    [index, dirty] = [runs[0].history.frames.length - 1, true];
  } else if (!live) {
    state[second ? "run2" : "run"] = "";
    change(second ? "spec2" : "spec", JSON.stringify(spec));
  }
}

/** Beta has changed on the way of a flow by Python. */
function onChanged(run, { t, beta, planned }) {
  const then = run.second ? "then2" : "then";
  if (!planned) state[then] = withChange(state[then], t, beta);
  showBeta(beta, run.second);
  keep();
}

/** Go where a step of a tour wants to be; without a place, stay. */
function visit(hash, tour) {
  if (hash === null) state = { ...state, tour };
  else {
    state = { ...parsed(hash, (notes = {})), theme: state.theme, tour };
    for (const key of Object.keys(live)) delete live[key];
    playing = !matchMedia(STILL).matches;
    restart();
  }
  redress();
}

/** Another beta from the last frame on; the address keeps the first beta and the changes. */
function changeBeta(second, before) {
  const run = runs[Number(second)];
  const [key, then] = second ? ["beta2", "then2"] : ["beta", "then"];
  if (!run) return;
  const beta = state[key];
  run.source.set({ beta }, reached);
  index = run.history.frames.length - 1;
  run.changes = []; // later ones that the address asked for
  live[key] = beta;
  state[key] = before[key];
  const changes = withChange(before[then], reached, beta);
  if (changesOf(changes).length <= CHANGES) state[then] = changes;
  else complain(`more than ${CHANGES} changes of β: the address no longer repeats this flow; reset it.`);
}

/** Begin with the betas that the sliders show. */
function forgetChanges() {
  state = { ...state, ...live, then: "", then2: "", t: 0 };
  for (const key of Object.keys(live)) delete live[key];
}

/** The betas that the sliders show, where they have been changed since the start. */
const live = {};

function redress() {
  colours = palette(state.theme);
  document.documentElement.dataset.theme = state.theme;
  show({ ...state, ...live }, notes);
  document.body.dataset.start = state.start;
  dirty = true;
  keep();
}

function complain(message) {
  $("note").textContent = "";
  $("message").textContent = message;
}

/** Turn the sphere by these angles. */
function turn(yaw, pitch) {
  state.yaw = ((state.yaw + yaw + 3 * Math.PI) % (2 * Math.PI)) - Math.PI;
  state.pitch = accepted("pitch", state.pitch + pitch, state);
  dirty = true;
}

/** Take a painted point into the start; without a point, begin with those that there are. */
function brush(point) {
  if (point) strokes.push(point);
  else if (strokes.length) change("points", withPoints(state, strokes.splice(0)));
  dirty = true;
}

/** A press on a panel: move the cursor to the time at this share of its axis, or go to a point of a sweep. */
function press(share, name) {
  const { runs: there, chosen, curve } = viewed();
  if (name === "sweep") {
    const point = pointAtShare(there[chosen].setting.sweep, curve, share);
    if (point !== null) change(there[chosen].second ? "at2" : "at", point);
  } else go(runs[0].history.indexAt(timeAt(share, Math.max(...there.map(latest)))));
}

/** Move the cursor to a frame, and hold. */
function go(to) {
  const last = runs[0].history.frames.length - 1;
  index = Math.max(0, Math.min(last, to));
  [playing, dirty] = [false, true];
}

function play(on) {
  [playing, seeking, dirty] = [on, 0, true];
}

function listen() {
  const actions = {
    play: () => play(!playing),
    step: () => {
      play(false);
      stepping = index === runs[0].history.frames.length - 1;
      advance();
    },
    back: () => go(index - 1),
    reset: () => {
      forgetChanges();
      restart();
      redress();
    },
    ...out.actions,
  };
  for (const [id, action] of Object.entries(actions)) $(id).onclick = action;
  $("time").oninput = () => go(Number($("time").value));
  keys(actions, guide);
  addEventListener("hashchange", () => {
    [state, playing] = [parsed(location.hash, (notes = {})), !matchMedia(STILL).matches];
    guide.show(state.tour);
    for (const key of Object.keys(live)) delete live[key];
    restart();
    redress();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redress);
  new ResizeObserver(() => (dirty = true)).observe(document.body);
}

if (matchMedia("(max-width: 720px)").matches)
  for (const one of document.querySelectorAll("details + details:not(:has(#beta))")) one.removeAttribute("open");
listen();
guide.show(state.tour);
restart();
redress();
requestAnimationFrame(tick);
