/** What is read off tokens beside clusters: energy, overlaps, amplitudes of modes, attention. */

import { recurrence } from "./special.js";
import { evenly } from "./starts.js";
import { choose } from "./sums.js";

/** Tokens whose overlaps are all counted; of more tokens, that many evenly chosen ones. */
const COUNTED = 512;
/** Rows and columns of the picture of attention, at most. */
const SHOWN = 64;

/**
 * E = (1/2 beta) sum_ij m_i m_j (e^(beta (<x_i, x_j> - 1)) - 1) <= 0, from the sum Z without a mask.
 * For small beta the first two terms of its expansion in beta, by moments.
 */
export function energy(x, m, d, beta, tol) {
  if (beta < 1e-5) return flatEnergy(x, m, d, beta);
  const total = new Float64Array(m.length);
  choose({ d, beta, causal: false, m, tol }).evaluate(x, m, total, new Float64Array(x.length));
  return energyOfTotal(total, m, beta);
}

/** The same from Z, which an evaluation of the field without a mask leaves. */
export function energyOfTotal(total, m, beta) {
  let level = 0;
  for (let i = 0; i < m.length; i++) level += m[i] * (total[i] - 1);
  return Math.min(level / (2 * beta), 0);
}

function flatEnergy(x, m, d, beta) {
  const mean = new Float64Array(d);
  const square = new Float64Array(d * d);
  for (let i = 0; i < m.length; i++) {
    for (let a = 0; a < d; a++) {
      mean[a] += m[i] * x[i * d + a];
      for (let b = 0; b < d; b++) square[a * d + b] += m[i] * x[i * d + a] * x[i * d + b];
    }
  }
  const first = mean.reduce((sum, one) => sum + one * one, 0);
  const second = square.reduce((sum, one) => sum + one * one, 0);
  return (first - 1) / 2 + (beta / 4) * (second - 2 * first + 1);
}

/** The density of the overlaps <x_i, x_j>, i < j, on [-1, 1] in equal bins. */
export function overlaps(x, d, bins) {
  const chosen = evenly(x.length / d, COUNTED);
  const found = new Float32Array(bins);
  for (let a = 1; a < chosen.length; a++) {
    const i = chosen[a] * d;
    for (let b = 0; b < a; b++) {
      const j = chosen[b] * d;
      const u = x[i] * x[j] + x[i + 1] * x[j + 1] + (d === 3 ? x[i + 2] * x[j + 2] : 0);
      found[Math.max(0, Math.min(bins - 1, Math.floor(((u + 1) / 2) * bins)))] += 1;
    }
  }
  const pairs = (chosen.length * (chosen.length - 1)) / 2 || 1;
  return found.map((one) => (one * bins) / (2 * pairs));
}

/**
 * The size of each degree 1, ..., count, near n^(-1/2) for iid uniform tokens and 1 for a single point.
 * It is the root of the mean of (sum_j m_j Y(x_j))^2 over the orthonormal harmonics Y of the degree.
 */
export function modes(x, m, d, count) {
  const power = new Float64Array(count + 1);
  for (let order = d === 2 ? 1 : 0; order <= count; order++) {
    const size = d === 2 ? 1 : count - order + 1;
    const re = new Float64Array(size);
    const im = new Float64Array(size);
    const steps = Float64Array.from({ length: size + 1 }, (_, k) => recurrence(k, order + 0.5));
    for (let i = 0, o = 0; i < m.length; i++, o += d) {
      let a = m[i];
      let b = 0;
      for (let k = 0; k < order; k++) {
        const next = a * x[o] - b * x[o + 1];
        b = a * x[o + 1] + b * x[o];
        a = next;
      }
      let before = 0;
      let now = 1;
      for (let k = 0; k < size; k++) {
        re[k] += a * now;
        im[k] += b * now;
        const next = d === 2 ? 0 : (x[o + 2] * now - steps[k] * before) / steps[k + 1];
        before = now;
        now = next;
      }
    }
    let norm = order ? 2 : 1;
    for (let j = 1; d === 3 && j <= order; j++) norm *= (j + 0.5) / j;
    for (let k = 0; k < size; k++) power[order + k] += norm * (re[k] ** 2 + im[k] ** 2);
  }
  return Float32Array.from({ length: count }, (_, k) => Math.sqrt(power[k + 1] / (d === 2 ? 2 : 2 * k + 3)));
}

/**
 * Attention among a few tokens, each row relative to its largest weight and in 256 steps: tokens in their order under a
 * causal mask, else cluster by cluster.
 * @returns {{ size: number, weights: Uint8Array }}
 */
export function attention(x, m, d, { beta, causal }, labels) {
  const n = m.length;
  const order = Int32Array.from({ length: n }, (_, i) => i);
  if (!causal) order.sort((a, b) => labels[a] - labels[b] || a - b);
  const shown = evenly(n, SHOWN).map((k) => order[k]);
  const size = shown.length;
  const weights = new Uint8Array(size * size);
  for (let a = 0; a < size; a++) {
    const row = Float64Array.from(shown, (j) => {
      const i = shown[a];
      if (causal && j > i) return 0;
      let u = 0;
      for (let c = 0; c < d; c++) u += x[i * d + c] * x[j * d + c];
      return m[j] * Math.exp(beta * (u - 1));
    });
    const most = row.reduce((one, other) => Math.max(one, other), 0) || 1;
    for (let b = 0; b < size; b++) weights[a * size + b] = Math.round((255 * row[b]) / most);
  }
  return { size, weights };
}
