/** The tokens on the circle or the sphere: where they are seen, and how a pen draws them. */

import { colourOf } from "./colours.js";
import { NONE } from "./lineage.js";
import { evenly } from "./starts.js";

/** Tokens that a pen draws, at most. */
const DRAWN = 4000;
const BINS = 180;
/** Tokens whose words are written beside them, and pixels within which a token is pointed at. */
const LABELLED = 60;
const REACH = 10;
/** Pixels, across and up, within which words are written one after the other. */
const NEAR = [32, 10];

/** The rotation by yaw about the vertical axis and pitch about the horizontal one; rows: right, up, towards the eye. */
export function camera(d, { yaw, pitch }) {
  if (d === 2) return [1, 0, 0, 0, 1, 0, 0, 0, 1];
  const [c, s, k, l] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  return [-s, c, 0, -c * l, -s * l, k, c * k, s * k, l];
}

/** The centre and the radius of the sphere in a picture of this size. */
export function placed(width, height, d) {
  return { x: width / 2, y: height / 2, r: (d === 2 ? 0.36 : 0.43) * Math.min(width, height) };
}

/** Radius of a token of mean mass, in pixels. */
export function dotRadius(n) {
  return Math.max(1.1, Math.min(6, 22 / n ** 0.36));
}

/** Disc, graticule and, on the circle, the density around it: all that is under the tokens. */
export function drawStage(pen, width, height, { setting, frame, eye, colours }) {
  const { x, y, r } = placed(width, height, setting.d);
  if (setting.d === 2) {
    pen.dot(x, y, r, { stroke: colours.faint, width: 1.2 });
    if (frame) drawDensity(pen, { x, y, r }, frame, colours);
    return;
  }
  pen.ball(x, y, r, colours.ball);
  pen.dot(x, y, r, { stroke: colours.faint, width: 1.2 });
  const turn = camera(3, eye);
  const along = (point) => [x + r * dot(turn, 0, point), y - r * dot(turn, 3, point), dot(turn, 6, point)];
  const curve = (at) => {
    let line = [];
    for (let k = 0; k <= 72; k++) {
      const [a, b, depth] = along(at((2 * Math.PI * k) / 72));
      if (depth >= -1e-9) line.push([a, b]);
      else if (line.length) {
        pen.path(line, { stroke: colours.faint, width: 0.8 });
        line = [];
      }
    }
    pen.path(line, { stroke: colours.faint, width: 0.8 });
  };
  for (const level of [-0.5, 0, 0.5]) {
    const [c, s] = [Math.cos((level * Math.PI) / 1.5), Math.sin((level * Math.PI) / 1.5)];
    curve((a) => [c * Math.cos(a), c * Math.sin(a), s]);
  }
  for (let k = 0; k < 3; k++) {
    const turnBy = (k * Math.PI) / 3;
    curve((a) => [Math.cos(a) * Math.cos(turnBy), Math.cos(a) * Math.sin(turnBy), Math.sin(a)]);
  }
}

/** Condensed clusters as pale discs, their areas proportional to their masses. */
export function drawClusters(pen, width, height, { setting, frame, eye, colours }) {
  if (!frame) return;
  const { x, y, r } = placed(width, height, setting.d);
  const turn = camera(setting.d, eye);
  frame.clusters.names.forEach((name, k) => {
    if (name === NONE) return;
    const [a, b, c = 0] = frame.clusters.centres.subarray(k * setting.d, (k + 1) * setting.d);
    const fill = colourOf(name, colours);
    const near = setting.d === 2 || dot(turn, 6, [a, b, c]) >= 0;
    const at = [x + r * dot(turn, 0, [a, b, c]), y - r * dot(turn, 3, [a, b, c])];
    const radius = 0.16 * r * Math.sqrt(frame.clusters.masses[k]);
    pen.dot(...at, radius, { fill, stroke: fill, alpha: near ? 0.45 : 0.16 });
  });
}

/** The tokens by a pen: what lies on the far side is pale. */
export function drawTokens(pen, width, height, { setting, frame, eye, colours, sizes, names }) {
  if (!frame) return;
  const { x, y, r } = placed(width, height, setting.d);
  const { d, n } = setting;
  const turn = camera(d, eye);
  const radius = dotRadius(n);
  const point = [0, 0, 0];
  const chosen = [...evenly(n, DRAWN)].map((i) => {
    for (let c = 0; c < d; c++) point[c] = frame.positions[i * d + c];
    return {
      i,
      a: x + r * dot(turn, 0, point),
      b: y - r * dot(turn, 3, point),
      depth: d === 2 ? 1 : dot(turn, 6, point),
    };
  });
  chosen.sort((one, other) => one.depth - other.depth);
  for (const { i, a, b, depth } of chosen) {
    const look = { fill: colourOf(names[i], colours), alpha: depth < 0 ? 0.28 : 0.92 };
    pen.dot(a, b, radius * sizes[i] * (depth < 0 ? 0.8 : 1), look);
  }
}

/** Words beside the tokens of the near side, where they are few. */
export function drawLabels(pen, width, height, { setting, frame, eye, colours, labels }) {
  if (!frame || !labels || setting.n > LABELLED) return;
  const { x, y, r } = placed(width, height, setting.d);
  const turn = camera(setting.d, eye);
  const written = [];
  labels.forEach((word, i) => {
    const point = [0, 1, 2].map((c) => (c < setting.d ? frame.positions[i * setting.d + c] : 0));
    if (setting.d === 3 && dot(turn, 6, point) < 0) return;
    const at = [x + r * dot(turn, 0, point) + 7, y - r * dot(turn, 3, point) - 6];
    const there = written.find((one) => NEAR.every((reach, c) => Math.abs(one.at[c] - at[c]) < reach));
    if (there) there.words.add(word);
    else written.push({ at, words: new Set([word]) });
  });
  for (const { at, words } of written) pen.text(...at, [...words].join(" "), { fill: colours.ink, size: 12 });
}

/** Points that are being painted. */
export function drawStrokes(pen, width, height, { setting, eye, colours, strokes }) {
  const { x, y, r } = placed(width, height, setting.d);
  const turn = camera(setting.d, eye);
  for (const point of strokes) pen.dot(x + r * dot(turn, 0, point), y - r * dot(turn, 3, point), 4, { fill: colours.ink });
}

/** The token nearest to a place of the picture, within a few pixels on the near side; -1 if there is none. */
export function tokenAt(width, height, { setting, frame, eye }, left, top) {
  const { x, y, r } = placed(width, height, setting.d);
  const turn = camera(setting.d, eye);
  const point = [0, 0, 0];
  let [best, found] = [REACH ** 2, -1];
  for (let i = 0; i < setting.n; i++) {
    for (let c = 0; c < setting.d; c++) point[c] = frame.positions[i * setting.d + c];
    if (setting.d === 3 && dot(turn, 6, point) < 0) continue;
    const away = (x + r * dot(turn, 0, point) - left) ** 2 + (y - r * dot(turn, 3, point) - top) ** 2;
    if (away < best) [best, found] = [away, i];
  }
  return found;
}

/** The point of the circle or of the near side of the sphere at a place of the picture; null beside it. */
export function pointAt(width, height, d, eye, left, top) {
  const { x, y, r } = placed(width, height, d);
  const [a, b] = [(left - x) / r, (y - top) / r];
  const size = Math.hypot(a, b);
  if (d === 2) return size > 0.2 ? [a / size, b / size, 0] : null;
  if (size > 1) return null;
  const [turn, c] = [camera(d, eye), Math.sqrt(1 - size ** 2)];
  return [0, 1, 2].map((k) => turn[k] * a + turn[3 + k] * b + turn[6 + k] * c);
}

function drawDensity(pen, { x, y, r }, frame, colours) {
  const weights = frame.weights;
  const n = frame.positions.length / 2;
  const bins = weights ? n : BINS; // points of a density are a grid: one a bin
  const counts = new Float64Array(bins);
  for (let i = 0; i < n; i++) {
    const angle = Math.atan2(frame.positions[2 * i + 1], frame.positions[2 * i]);
    counts[Math.floor(((angle / (2 * Math.PI) + 1) % 1) * bins + (weights ? 0.5 : 0)) % bins] += weights ? weights[i] * n : 1;
  }
  const line = [];
  for (let k = 0; k <= bins; k++) {
    // heights as the root of the density, so that one point still fits
    const height = 0.3 * r * Math.min(1, Math.sqrt(((counts[k % bins] / n) * bins) / 60));
    const angle = (2 * Math.PI * (k + (weights ? 0 : 0.5))) / bins;
    line.push([x + (r + 9 + height) * Math.cos(angle), y - (r + 9 + height) * Math.sin(angle)]);
  }
  pen.path(line, { stroke: colours.grey, width: 1.2 });
}

/**
 * The product of a row of a rotation and a vector.
 * @param {number[]} turn
 * @param {number} row
 * @param {number[]} vector
 */
function dot(turn, row, [a, b, c]) {
  return turn[row] * a + turn[row + 1] * b + turn[row + 2] * c;
}
