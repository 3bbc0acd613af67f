/** Elements of the page that draw: figures with a chart, and the pictures of tokens. */

import { inner, shown } from "./axes.js";
import { glPainter } from "./gl.js";
import { CanvasPen } from "./pen.js";
import { NONE } from "./lineage.js";
import { drawClusters, drawLabels, drawStage, drawStrokes, drawTokens, pointAt, tokenAt } from "./sphere.js";

/** Panels whose horizontal axis leads somewhere: to a time, or to a value of a sweep. */
const TIMED = ["energy", "counts", "tree"];
const LEADS = [...TIMED, "sweep"];

/**
 * A figure with a heading, a canvas and what theory says; a press on a panel with an axis calls `onShare` with the share of
 * the axis and the name of the panel.
 */
export function panel(place, [name, title, chart, has], onShare) {
  const figure = Object.assign(document.createElement("figure"), { hidden: true });
  figure.id = `panel-${name}`;
  const heading = Object.assign(document.createElement("h2"), { textContent: title });
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  const caption = document.createElement("figcaption");
  figure.append(heading, canvas, caption);
  place.append(figure);
  if (LEADS.includes(name)) {
    canvas.classList.add("timed");
    canvas.onpointerdown = (event) => {
      const { left, right } = inner(canvas.clientWidth, canvas.clientHeight);
      if (event.buttons === 1) onShare((event.offsetX - left) / (right - left), name);
    };
    if (TIMED.includes(name)) canvas.onpointermove = canvas.onpointerdown;
  }
  return {
    paint(view) {
      const run = view.runs[view.chosen];
      figure.hidden = !has(run.history.frames[run.index], run.setting);
      if (figure.hidden) return;
      const { pen, width, height } = fitted(canvas);
      chart(pen, width, height, view);
      const words = run.prediction.words[name];
      if (caption.textContent !== words) caption.textContent = words;
      canvas.setAttribute("aria-label", `${title} at t = ${shown(run.history.frames[run.index].t)}. ${words}`);
    },
  };
}

/**
 * The picture of one flow: the stage by a pen, the tokens by WebGL or, without it, by the same pen. Dragging and the
 * arrow keys call `onTurn` with the changes of yaw and pitch.
 */
export function scene(place, onTurn, onPaint) {
  const [stage, front] = place.querySelectorAll("canvas");
  const gl = glPainter(front);
  const tip = Object.assign(document.createElement("span"), { className: "tip", hidden: true });
  place.append(tip);
  let seen = null; // what was painted last
  const size = () => [place.clientWidth, place.clientHeight];
  const brush = (event) => {
    const point = pointAt(...size(), seen.setting.d, seen.eye, event.offsetX, event.offsetY);
    if (point) onPaint(point);
  };
  place.onpointerdown = (event) => {
    place.setPointerCapture(event.pointerId); // a stroke may end beside the picture
    if (seen?.painting) brush(event);
  };
  place.onpointermove = (event) => {
    if (event.buttons === 1 && seen?.painting) brush(event);
    else if (event.buttons === 1) onTurn(-0.008 * event.movementX, 0.008 * event.movementY);
    else point(event);
  };
  place.onpointerup = place.onpointercancel = () => seen?.painting && onPaint(null);
  place.onpointerleave = () => (tip.hidden = true);
  /** Say which token is under the mouse. */
  const point = ({ offsetX, offsetY }) => {
    const i = seen?.frame ? tokenAt(...size(), seen, offsetX, offsetY) : -1;
    tip.hidden = i < 0;
    if (i < 0) return;
    const name = seen.frame.names[i];
    tip.textContent = `${seen.labels?.[i] ?? `token ${i}`}${name === NONE ? "" : `, cluster ${name + 1}`}`;
    [tip.style.left, tip.style.top] = [`${offsetX + 12}px`, `${offsetY + 8}px`];
  };
  place.onkeydown = (event) => {
    const steps = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!steps) return;
    event.preventDefault();
    onTurn(...steps);
  };
  return {
    painter: gl ? "webgl" : "canvas",
    paint(what) {
      seen = what;
      const { pen, width, height, density } = fitted(stage);
      drawStage(pen, width, height, what);
      drawClusters(pen, width, height, what);
      if (gl) {
        if (front.width !== stage.width) front.width = stage.width;
        if (front.height !== stage.height) front.height = stage.height;
        gl(what, width, height, density);
      } else drawTokens(pen, width, height, what);
      drawLabels(pen, width, height, what);
      drawStrokes(pen, width, height, what);
      place.style.touchAction = what.painting ? "none" : ""; // a finger paints, rather than scrolls
      place.setAttribute("aria-label", said(what));
    },
  };
}

/** A picture of tokens in words, for a screen reader. */
function said({ setting, frame }) {
  if (setting.kind === "density") return `a density on ${setting.space}, t = ${shown(frame.t)}`;
  if (!setting.n) return "no tokens: numbers of a sweep alone";
  const groups = frame.condensed ? `${frame.count} cluster${frame.count > 1 ? "s" : ""}` : "not condensed";
  return `${setting.n} tokens, ${groups}, t = ${shown(frame.t)}`;
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
