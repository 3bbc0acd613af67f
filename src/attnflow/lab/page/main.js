/** The page: one or two flows, one time cursor, panels. */

import { inner, shown, timeAt } from "./axes.js";
import { palette } from "./colours.js";
import { controls } from "./controls.js";
import { glPainter } from "./gl.js";
import { History } from "./history.js";
import { CanvasPen } from "./pen.js";
import { predict } from "./predict.js";
import { offer, PANELS, toCsv, toPng, toPython, toSvg } from "./save.js";
import { workerSource } from "./source.js";
import { drawClusters, drawStage, drawTokens } from "./sphere.js";
import { masses } from "./starts.js";
import { changesOf, clamped, consistent, DYNAMIC, END, parsed, settingOf, START, written } from "./state.js";

/** Frames that may be under way at the same time. */
const OUTSTANDING = 2;
/** The first step of the cursor; a step is this share of 1 + t. */
const STEP = 0.02;
/** Frames a second, at most. */
const RATE = 30;

/**
 * @typedef {object} Run one flow
 * @property {import("./engine.js").Setting} setting
 * @property {History} history
 * @property {import("./engine.js").Frame[]} arrived frames that wait for those of the other flow
 * @property {string} colour
 * @property {import("./predict.js").Prediction | null} prediction
 */

const $ = (id) => document.getElementById(id);
let state = parsed(location.hash);
let colours = palette(state.theme);
/** @type {Run[]} */
let runs = [];
let index = 0; // of the frame at the cursor
let asked = []; // times of frames under way
let reached = 0; // the last time that was asked for
let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
let seeking = 0; // a time to go to before anything is shown
let dirty = true;
let painted = 0;
let keeping = 0;

const show = controls(change);
const panels = PANELS.map(([name, title, chart]) => panel(name, title, chart));
const scenes = ["A", "B"].map((name) => scene($(`scene-${name}`)));
globalThis.lab = { facts }; // for tests and benchmarks: what the page shows, as numbers

/** Begin again from the start, with what the state says. */
function restart() {
  for (const run of runs) run.source.close();
  runs = (state.compare === "on" ? [false, true] : [false]).map(begin);
  [index, asked, reached, seeking] = [0, [], 0, state.t];
  document.body.classList.toggle("two", runs.length === 2);
  ask(0);
}

function begin(second) {
  const setting = settingOf(state, second);
  const run = {
    setting,
    history: new History(setting.n, setting.d),
    arrived: [],
    prediction: null,
    second,
    changes: changesOf(state[second ? "then2" : "then"]),
    sizes: tokenSizes(setting),
  };
  run.source = workerSource((frame) => arrive(run, frame), complain);
  run.source.start(setting);
  return run;
}

/** Radii of tokens relative to that of the mean mass. */
function tokenSizes(setting) {
  return Float32Array.from(masses(setting), (one) => Math.min(3, Math.max(0.5, Math.sqrt(one * setting.n))));
}

/** Ask every flow for a frame at the time t. */
function ask(t) {
  asked.push(t);
  for (const run of runs) {
    // changes of beta that the address asks for take place at frames
    for (const one of run.changes.filter(({ t: at }) => at >= reached && at < t)) {
      run.source.set({ beta: one.beta }, reached);
    }
    run.source.credit(t);
  }
  reached = t;
}

function arrive(run, frame) {
  run.arrived.push(frame);
  while (runs.every(({ arrived }) => arrived.length)) {
    const live = index === runs[0].history.frames.length - 1;
    asked.shift();
    let thinned = false;
    for (const one of runs) thinned = one.history.push(one.arrived.shift()) || thinned;
    const last = runs[0].history.frames.length - 1;
    if (live || last === 0) index = last;
    else if (thinned) index = Math.floor(index / 2);
    dirty = true;
    if (seeking && reached >= seeking) {
      playing = false;
      seeking = 0;
    }
  }
}

/** The next frame: one that is kept, or a new one. */
function advance(share = 1) {
  const last = runs[0].history.frames.length - 1;
  if (index < last) {
    index += 1;
    dirty = true;
  } else if (asked.length < OUTSTANDING && reached < END) {
    const step = STEP * Number(state.speed) * share * (1 + reached);
    ask(Math.min(END, Number((reached + step).toPrecision(6))));
  } else if (reached >= END && !asked.length) playing = false;
}

function tick(now) {
  if (now - painted >= 1000 / RATE - 4) {
    if (playing || seeking) advance();
    if (dirty && runs[0].history.frames.length) {
      painted = now;
      dirty = false;
      paint();
    }
  }
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
  for (const one of panels) one.paint(view);
  const last = runs[0].history.frames.at(-1).t;
  const now = runs[0].history.frames[index].t;
  $("time").max = runs[0].history.frames.length - 1;
  $("time").value = index;
  $("time").setAttribute("aria-valuetext", `t = ${shown(now)} of ${shown(last)}`);
  $("clock").textContent = `t = ${shown(now)}`;
  $("play").textContent = playing ? "Pause" : "Play";
  runs.forEach((run, k) => ($(`facts-${"AB"[k]}`).textContent = sentence(run)));
  if (!playing && !seeking) keep();
}

function viewed() {
  return { runs, chosen: runs.length === 2 && state.shown === "B" ? 1 : 0, index, colours };
}

function sceneOf(run) {
  return { setting: run.setting, frame: run.history.frames[index], eye: state, colours, sizes: run.sizes };
}

function sentence({ setting, history, second }) {
  const label = runs.length === 1 ? "" : second ? "B: " : "A: ";
  const { count, condensed, energy, order, sum, beta } = history.frames[index];
  const groups = condensed ? `${count} cluster${count > 1 ? "s" : ""}` : "not condensed";
  const by = sum.name === "pairs" ? "all pairs" : `${sum.name} to degree ${sum.degree}`;
  return `${label}β = ${shown(beta)} · ${groups} · E = ${shown(energy)} · |mean| = ${shown(order)} · ${setting.n} tokens, ${by}`;
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
  const before = state;
  state = consistent({ ...state, [key]: value, t: 0 });
  const second = key.endsWith("2");
  const own = second ? key.slice(0, -1) : key;
  if (own === "beta" && runs[0].history.frames.length > 1) changeBeta(second, before);
  else if (key in START || DYNAMIC.includes(own) || key === "compare" || key === "accuracy") {
    state = { ...state, then: "", then2: "" };
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
  const changes = [...changesOf(before[then]).filter(({ t }) => t < reached), { t: reached, beta }];
  state = { ...state, [then]: clamped(then, changes.map((one) => `${one.t}:${one.beta}`).join(",")) };
  live[key] = beta;
  state[key] = before[key];
}

/** The betas that the sliders show, where they have been changed since the start. */
const live = {};

function redress() {
  colours = palette(state.theme);
  document.documentElement.dataset.theme = state.theme;
  show({ ...state, ...live });
  document.body.classList.toggle("ring", state.start === "ring");
  dirty = true;
  keep();
}

function complain(message) {
  $("message").textContent = `The engine stopped: ${message}`;
}

/** A figure with a heading, a canvas and what theory says. */
function panel(name, title, chart) {
  const figure = document.createElement("figure");
  figure.id = `panel-${name}`;
  const heading = Object.assign(document.createElement("h2"), { textContent: title });
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  const caption = document.createElement("figcaption");
  figure.append(heading, canvas, caption);
  $("panels").append(figure);
  if (["energy", "counts", "tree"].includes(name)) {
    canvas.classList.add("timed");
    canvas.onpointerdown = canvas.onpointermove = (event) => {
      if (event.buttons !== 1) return;
      const frames = runs[0].history.frames;
      const at = timeAt(inner(canvas.clientWidth, canvas.clientHeight), frames.at(-1).t, event.offsetX);
      go(runs[0].history.indexAt(at));
    };
  }
  return {
    paint(view) {
      const { pen, width, height } = fitted(canvas);
      chart(pen, width, height, view);
      const words = view.runs[view.chosen].prediction.words[name];
      if (caption.textContent !== words) caption.textContent = words;
      canvas.setAttribute("aria-label", `${title} at t = ${shown(view.runs[0].history.frames[view.index].t)}. ${words}`);
    },
  };
}

/** The picture of one flow: the stage by a pen, the tokens by WebGL or, without it, by the same pen. */
function scene(place) {
  const [stage, front] = place.querySelectorAll("canvas");
  const gl = glPainter(front);
  turnable(place);
  return {
    painter: gl ? "webgl" : "canvas",
    paint(what) {
      const { pen, width, height, density } = fitted(stage);
      drawStage(pen, width, height, what);
      drawClusters(pen, width, height, what);
      if (gl) {
        if (front.width !== stage.width) front.width = stage.width;
        if (front.height !== stage.height) front.height = stage.height;
        gl(what, width, height, density);
      } else drawTokens(pen, width, height, what);
      place.setAttribute("aria-label", `${what.setting.n} tokens, ${what.frame.count} clusters, t = ${shown(what.frame.t)}`);
    },
  };
}

/** A canvas as large as it is shown, cleared, with a pen in its pixels. */
function fitted(canvas) {
  const density = Math.min(devicePixelRatio || 1, 2);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [w, h] = [Math.round(width * density), Math.round(height * density)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  return { pen: new CanvasPen(context), width, height, density };
}

/** Turn the sphere by dragging, or by the arrow keys. */
function turnable(place) {
  const turn = (yaw, pitch) => {
    state.yaw = ((state.yaw + yaw + Math.PI) % (2 * Math.PI)) - Math.PI;
    state.pitch = clamped("pitch", state.pitch + pitch);
    dirty = true;
  };
  place.onpointermove = (event) => event.buttons === 1 && turn(-0.008 * event.movementX, 0.008 * event.movementY);
  place.onkeydown = (event) => {
    const steps = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!steps) return;
    event.preventDefault();
    turn(...steps);
  };
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
      for (const key of Object.keys(live)) {
        state[key] = live[key];
        delete live[key];
      }
      state = { ...state, then: "", then2: "", t: 0 };
      restart();
      redress();
    },
    png,
    svg: () => offer("attnflow-lab.svg", toSvg(viewed(), runs.map(sceneOf))),
    csv: () => offer("attnflow-lab.csv", toCsv(runs)),
    python: () => {
      const { chosen } = viewed();
      $("lines").textContent = toPython(state, runs[0].history.frames[index].t, chosen === 1);
      $("dialog").showModal();
    },
    copy: () => navigator.clipboard?.writeText($("lines").textContent),
    close: () => $("dialog").close(),
  };
  for (const [id, action] of Object.entries(actions)) $(id).onclick = action;
  $("time").oninput = () => go(Number($("time").value));
  addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea, button, dialog[open]")) return;
    const action = { " ": "play", ".": "step", ",": "back", r: "reset" }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[action]();
  });
  addEventListener("hashchange", () => {
    state = parsed(location.hash);
    for (const key of Object.keys(live)) delete live[key];
    restart();
    redress();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redress);
  new ResizeObserver(() => (dirty = true)).observe(document.body);
}

if (matchMedia("(max-width: 720px)").matches) for (const one of document.querySelectorAll("details + details")) one.open = false;
listen();
restart();
redress();
requestAnimationFrame(tick);
