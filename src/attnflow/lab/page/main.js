/** The page: one or two flows, one time cursor, panels. */

import { shown, timeAt } from "./axes.js";
import { palette } from "./colours.js";
import { controls } from "./controls.js";
import { begin, remote, sizesOf } from "./flow.js";
import { pointText } from "./own.js";
import { panel, scene } from "./panels.js";
import { predict } from "./predict.js";
import { Film, offer, PANELS, toCsv, toPng, toPython, toSvg } from "./save.js";
import { tours } from "./tours.js";
import { CHANGES, changesOf, clamped, consistent, dimension, DYNAMIC, END, parsed, SOURCES, START, written } from "./state.js";

/** Frames that may be under way at the same time; more on the way to a time that the address asks for. */
const OUTSTANDING = 2;
const SEEKING = 12;
/** The first step of the cursor; a step is this share of 1 + t. */
const STEP = 0.02;
/** Milliseconds without a frame after which the page says that it computes. */
const PATIENCE = 1000;
/** Frames a second, at most. */
const RATE = 30;

const STILL = "(prefers-reduced-motion: reduce)";

/** @type {(id: string) => any} */
const $ = (id) => document.getElementById(id);
let state = parsed(location.hash);
let colours = palette(state.theme);
/** @type {import("./flow.js").Run[]} */
let runs = [];
let index = 0; // of the frame at the cursor
let asked = []; // times of frames under way
let reached = 0; // the last time that was asked for
let playing = !matchMedia(STILL).matches;
let ended = false; // whether a source with times of its own has given its last frame
let seeking = 0; // a time to go to before anything is shown
let dirty = true;
let painted = 0;
let keeping = 0;
let heard = 0; // when the last frame came
let film = null; // while one is taken
const strokes = []; // points since the mouse was pressed
let said = 0; // the cluster count that a screen reader was told

const show = controls(change);
const guide = tours(visit);
const panels = PANELS.map((row) => panel($("panels"), row, goToShare));
const scenes = ["A", "B"].map((name) => scene($(`scene-${name}`), turn, brush));
globalThis.lab = { facts }; // for tests and benchmarks: what the page shows, as numbers

/** Begin again from the start, with what the state says. */
function restart() {
  for (const run of runs) run.source.close();
  [index, asked, reached, seeking, said, ended] = [0, [], 0, state.t, 0, false];
  complain("");
  const own = state.source !== "page";
  runs = own ? [remote(state, hear)] : (state.compare === "on" ? [false, true] : [false]).map((b) => begin(state, b, hear));
  document.body.classList.toggle("two", runs.length === 2);
  document.body.dataset.source = state.source;
  if (!own) ask(0);
}

/** What flows tell the page. */
const hear = {
  onFrame: arrive,
  onError: (words) => complain(words),
  onBegun: () => {
    [index, asked, reached, ended] = [0, [], 0, false];
    complain("");
    ask(0);
  },
  onEnded: (words) => {
    [ended, asked, dirty] = [true, [], true];
    $("note").textContent = words;
  },
  onBack: () => restart(),
  onSpec: (spec) => {
    state.run = "";
    change("spec", JSON.stringify(spec));
  },
};

/** Ask every flow for a frame at the time t. */
function ask(t) {
  asked.push(t);
  for (const run of runs) {
    // changes of beta that the address asks for take place at frames
    for (const { beta } of run.changes.filter((one) => one.t >= reached && one.t < t)) {
      run.source.set({ beta }, reached);
      live[run.second ? "beta2" : "beta"] = beta;
      show({ ...state, ...live });
    }
    run.source.credit(t);
  }
  reached = t;
}

function arrive(run, frame) {
  run.arrived.push(frame);
  heard = performance.now();
  if (frame.last) ended = true;
  while (runs.every(({ arrived }) => arrived.length)) {
    const live = index === runs[0].history.frames.length - 1;
    asked.shift();
    let thinned = false;
    for (const one of runs) thinned = one.history.push(one.arrived.shift()) || thinned;
    const last = runs[0].history.frames.length - 1;
    if (live || last === 0) index = last;
    else if (thinned) index = Math.floor(index / 2);
    dirty = true;
    if (seeking && runs[0].history.frames[last].t >= seeking) [playing, seeking] = [false, 0];
  }
}

/** The next frame: one that is kept, or a new one. */
function advance() {
  if (index < runs[0].history.frames.length - 1) {
    index += 1;
    dirty = true;
  } else if (ended || (!runs[0].source.own && reached >= END && !asked.length)) [playing, dirty] = [false, true];
  else if (asked.length < OUTSTANDING) askNext();
}

/** Ask for the next frame; changes of beta, and the time that the address asks for, fall on frames. */
function askNext() {
  if (runs[0].source.own) return ended || !runs[0].begun ? undefined : ask(reached);
  const step = STEP * Number(state.speed) * (1 + reached);
  const stops = [END, seeking, ...runs.flatMap((run) => run.changes.map(({ t }) => t))].filter((t) => t > reached);
  if (stops.length) ask(Math.min(...stops, Number((reached + step).toPrecision(6))));
}

function tick(now) {
  if (now - painted >= 1000 / RATE - 4) {
    const { own, begun } = { own: runs[0].source.own, begun: runs[0].begun };
    while (seeking && (own ? begun && !ended : reached < seeking) && asked.length < SEEKING) askNext();
    if (playing && !seeking) advance();
    if (dirty && runs[0].history.frames.length) {
      painted = now;
      dirty = false;
      paint();
    }
  }
  $("busy").hidden = !asked.length || now - heard < PATIENCE;
  requestAnimationFrame(tick);
}

function paint() {
  index = Math.min(index, runs[0].history.frames.length - 1);
  for (const run of runs) {
    run.colour = run.second ? colours.second : colours.first;
    run.prediction = predict(run.setting, run.history.frames, index);
  }
  const view = viewed();
  runs.forEach((run, k) => scenes[k].paint(sceneOf(run)));
  film?.add(view, runs.map(sceneOf));
  for (const one of panels) one.paint(view);
  const last = runs[0].history.frames.at(-1).t;
  const now = runs[0].history.frames[index].t;
  $("time").max = runs[0].history.frames.length - 1;
  $("time").value = index;
  $("time").setAttribute("aria-valuetext", `t = ${shown(now)} of ${shown(last)}`);
  $("clock").textContent = `t = ${shown(now)}`;
  $("play").textContent = playing ? "Pause" : "Play";
  runs.forEach((run, k) => ($(`facts-${"AB"[k]}`).textContent = sentence(run)));
  announce(runs[view.chosen].history.frames[index]);
  if (!playing && !seeking) keep();
}

/** Tell a screen reader when condensed clusters have become fewer or more. */
function announce({ t, count, condensed }) {
  if (!condensed || count === said) return;
  said = count;
  $("said").textContent = `${count} cluster${count > 1 ? "s" : ""} at t = ${shown(t)}`;
}

function viewed() {
  return { runs, chosen: runs.length === 2 && state.shown === "B" ? 1 : 0, index, colours };
}

function sceneOf(run) {
  const frame = run.history.frames[index];
  const sizes = frame?.weights ? sizesOf(frame.weights) : run.sizes;
  const painting = state.source === "page" && state.start === "points";
  return { setting: run.setting, frame, eye: state, colours, sizes, labels: run.labels, painting };
}

function sentence({ setting, history, second }) {
  const label = runs.length === 1 ? "" : second ? "B: " : "A: ";
  const { count, condensed, energy, order, sum, beta, counted } = history.frames[index];
  const groups = condensed ? `${count} cluster${count > 1 ? "s" : ""}` : "not condensed";
  const by = !sum ? "" : sum.name === "pairs" ? ", all pairs" : `, ${sum.name} to degree ${sum.degree}`;
  const parts = [beta === null ? "" : `β = ${shown(beta)}`, counted === false ? "" : groups];
  if (energy !== null) parts.push(`E = ${shown(energy)}`);
  const measured = [...parts, `|mean| = ${shown(order)}`].filter(Boolean).join(" · ");
  const what = setting.kind === "density" ? `a density on ${setting.space}` : `${setting.n} tokens${by}`;
  return `${label}${measured} · ${what}${setting.full > 3 ? `, ${setting.full} coordinates` : ""}`;
}

/** What the page shows, as numbers. */
function facts() {
  const flows = runs.map(({ history, prediction }) => {
    const { t, beta, count, condensed, energy } = history.frames[index] ?? {};
    return { t, beta, count, condensed, energy, frames: history.frames.length, next: prediction?.next?.t ?? null };
  });
  return { playing, index, reached, flows, painter: scenes[0].painter, state };
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
function change(key, given) {
  const value = clamped(key, given);
  if (value === (live[key] ?? state[key])) return redress();
  const before = state;
  state = consistent({ ...state, [key]: value, t: 0 });
  const second = key.endsWith("2");
  const own = second ? key.slice(0, -1) : key;
  if (own === "beta" && !runs[0].source.own && runs[0].history.frames.length > 1) changeBeta(second, before);
  else if (SOURCES.includes(key) || key in START || DYNAMIC.includes(own) || key === "compare" || key === "accuracy") {
    if (SOURCES.includes(key)) playing = !matchMedia(STILL).matches;
    forgetChanges();
    restart();
  }
  redress();
}

/** Go where a step of a tour wants to be; without a place, stay. */
function visit(hash, tour) {
  if (hash === null) state = { ...state, tour };
  else {
    state = { ...parsed(hash), theme: state.theme, tour };
    for (const key of Object.keys(live)) delete live[key];
    playing = !matchMedia(STILL).matches;
    restart();
  }
  redress();
}

/** Another beta from the last frame on; the address keeps the first beta and the changes. */
function changeBeta(second, before) {
  const run = runs[second ? 1 : 0];
  const [key, then] = second ? ["beta2", "then2"] : ["beta", "then"];
  if (!run) return;
  const beta = state[key];
  run.source.set({ beta }, reached);
  index = run.history.frames.length - 1;
  run.changes = []; // later ones that the address asked for
  live[key] = beta;
  state[key] = before[key];
  const changes = [...changesOf(before[then]).filter(({ t }) => t < reached), { t: reached, beta }];
  if (changes.length <= CHANGES) state[then] = changes.map((one) => `${one.t}:${one.beta}`).join(",");
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
  show({ ...state, ...live });
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
  state.pitch = clamped("pitch", state.pitch + pitch);
  dirty = true;
}

/** Take a painted point into the start; without a point, begin with those that there are. */
function brush(point) {
  if (point) strokes.push(pointText(point, dimension(state)));
  else if (strokes.length) change("points", [state.points, ...strokes.splice(0)].filter(Boolean).join(","));
}

/** Move the cursor to the time at this share of the axis of time. */
function goToShare(share) {
  const { history: kept } = runs[0];
  go(kept.indexAt(timeAt(share, kept.frames.at(-1).t)));
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
  const png = async () => offer("attnflow-lab.png", await toPng(viewed(), runs.map(sceneOf)));
  const actions = {
    play: () => play(!playing),
    step: () => {
      play(false);
      advance();
    },
    back: () => go(index - 1),
    reset: () => {
      forgetChanges();
      restart();
      redress();
    },
    png,
    svg: () => offer("attnflow-lab.svg", toSvg(viewed(), runs.map(sceneOf))),
    webm: async () => {
      const taken = film;
      film = taken ? null : new Film();
      $("webm").textContent = film ? "Stop the film" : "WebM";
      dirty = true;
      if (taken) offer("attnflow-lab.webm", await taken.end());
    },
    csv: () => offer("attnflow-lab.csv", toCsv(runs)),
    python: () => {
      const { chosen } = viewed();
      const link = state.source === "page" ? `\n# a run folder: attnflow run --from-url '${location.href}'\n` : "";
      $("lines").textContent = toPython(state, runs[0].history.frames[index].t, chosen === 1) + link;
      $("dialog").showModal();
    },
    copy: () => {
      getSelection().selectAllChildren($("lines"));
      navigator.clipboard?.writeText($("lines").textContent);
    },
    close: () => $("dialog").close(),
  };
  for (const [id, action] of Object.entries(actions)) $(id).onclick = action;
  $("time").oninput = () => go(Number($("time").value));
  addEventListener("keydown", (event) => {
    if (/** @type {Element} */ (event.target).closest("input, select, textarea, button, dialog[open]")) return;
    if (event.key === " " && guide.next()) return event.preventDefault();
    const action = { " ": "play", ".": "step", ",": "back", r: "reset" }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[action]();
  });
  addEventListener("hashchange", () => {
    state = parsed(location.hash);
    guide.show(state.tour);
    for (const key of Object.keys(live)) delete live[key];
    restart();
    redress();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redress);
  new ResizeObserver(() => (dirty = true)).observe(document.body);
}

if (matchMedia("(max-width: 720px)").matches)
  for (const one of document.querySelectorAll("details + details")) one.removeAttribute("open");
listen();
guide.show(state.tour);
restart();
redress();
requestAnimationFrame(tick);
