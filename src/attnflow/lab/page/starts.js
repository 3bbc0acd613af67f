/** Starts of a flow: positions as `attnflow.uniform` and `attnflow.ring` draw them, and masses. */

import { Random } from "./random.js";

/**
 * @typedef {object} Start
 * @property {2 | 3} d the tokens live on S^(d-1)
 * @property {number} n number of tokens
 * @property {number} seed
 * @property {"uniform" | "ring"} start iid uniform tokens, or equispaced ones on a great circle
 * @property {Float64Array | number[]} [given] positions of a start of one's own
 * @property {number} jitter standard deviation of the angles of a ring
 * @property {number} zipf masses proportional to (rank)^(-zipf); 0 makes them equal
 */

/** @param {Start} start @returns {Float64Array} positions, d numbers a token */
export function positions({ d, n, seed, start, jitter, given }) {
  if (given) return Float64Array.from(given);
  const random = new Random(seed);
  const x = new Float64Array(n * d);
  if (start === "ring") {
    for (let i = 0; i < n; i++) {
      const angle = (2 * Math.PI * i) / n + jitter * random.normal();
      x[i * d] = Math.cos(angle);
      x[i * d + 1] = Math.sin(angle);
    }
    return x;
  }
  for (let k = 0; k < x.length; k++) x[k] = random.normal();
  return retract(x, d);
}

/** @param {Start} start @returns {Float64Array} masses, which sum to 1 */
export function masses({ n, zipf }) {
  const m = Float64Array.from({ length: n }, (_, i) => (i + 1) ** -zipf);
  const total = m.reduce((sum, one) => sum + one, 0);
  return m.map((one) => one / total);
}

/** Every token moved to the nearest point of the sphere, in place. */
export function retract(x, d) {
  for (let i = 0; i < x.length; i += d) {
    const norm = d === 2 ? Math.hypot(x[i], x[i + 1]) : Math.sqrt(x[i] ** 2 + x[i + 1] ** 2 + x[i + 2] ** 2);
    for (let k = i; k < i + d; k++) x[k] /= norm;
  }
  return x;
}

/** Every token, or `most` evenly chosen ones. */
export function evenly(n, most) {
  const count = Math.min(n, most);
  return Int32Array.from({ length: count }, (_, k) => Math.floor((k * n) / count));
}
