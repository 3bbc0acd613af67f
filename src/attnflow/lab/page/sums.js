/**
 * Three ways to sum over all tokens, and the choice between them. A sum fills `total` with Z_i = sum_j m_j K(x_i, x_j)
 * and `vector` with S_i = sum_j m_j K(x_i, x_j) x_j, K = e^(beta (<x, y> - 1)); with a causal mask j goes up to i.
 */

import { degreeWeights, recurrence, truncationDegree } from "./special.js";

/** The largest absolute error of the softmax mean that round-off may leave. */
const LOOSEST = 1e-6;
/** Round-off of a series in units of 2^-52 sqrt(degree + 1), as in the library. */
const ROUND_OFF = 4;
/** Nanoseconds of a pair, of a token and degree on the circle, of a token and harmonic: `benchmarks/lab.py --costs`. */
const COSTS = { pair: 22, circle: 8, harmonic: 19 };

/**
 * @typedef {object} Sum
 * @property {string} name
 * @property {number} degree of the series; 0 for pairs
 * @property {(x: Float64Array, m: Float64Array, total: Float64Array, vector: Float64Array) => void} evaluate
 */

/** @typedef {{ name: string, seconds: number, degree: number }} Offer */

/**
 * What each sum costs that meets the tolerance; the library chooses in the same way.
 * @param {{ d: number, beta: number, n: number, lightest: number, tol: number }} about `lightest` is the least mass,
 *     `tol` the absolute error of the softmax mean
 * @returns {Offer[]}
 */
export function offers({ d, beta, n, lightest, tol }) {
  const found = [{ name: "pairs", seconds: (n * n * COSTS.pair) / 1e9, degree: 0 }];
  const weights = degreeWeights(beta, d);
  const rounding = (degree) => (4 * ROUND_OFF * 2 ** -52 * Math.sqrt(degree + 1)) / lightest;
  const floor = rounding(weights.length);
  const degree = Math.max(truncationDegree(weights, (Math.max(tol, floor) * lightest) / 4), 1);
  if (rounding(degree) > LOOSEST) return found;
  const [name, functions, cost] =
    d === 2 ? ["circle", degree + 1, COSTS.circle] : ["harmonics", ((degree + 1) * (degree + 2)) / 2, COSTS.harmonic];
  found.push({ name, seconds: (n * functions * cost) / 1e9, degree });
  return found;
}

/**
 * The cheapest sum, or the one of this name.
 * @param {{ d: number, beta: number, causal: boolean, m: Float64Array, tol: number, name?: string }} about
 * @returns {Sum}
 */
export function choose({ d, beta, causal, m, tol, name }) {
  const lightest = m.reduce((least, one) => Math.min(least, one), 1);
  const possible = offers({ d, beta, n: m.length, lightest, tol }).filter((one) => !name || one.name === name);
  const best = possible.reduce((a, b) => (b.seconds < a.seconds ? b : a));
  const make = { pairs, circle, harmonics }[best.name];
  return { name: best.name, degree: best.degree, evaluate: make({ d, beta, causal, degree: best.degree }) };
}

/** Every pair; a pair (i, j) is worked on once for both. */
function pairs({ d, beta, causal }) {
  return (x, m, total, vector) => {
    const n = m.length;
    total.fill(0);
    vector.fill(0);
    for (let i = 0; i < n; i++) {
      const a = x[i * d];
      const b = x[i * d + 1];
      const c = d === 3 ? x[i * d + 2] : 0;
      const mass = m[i];
      let z = mass;
      let sa = mass * a;
      let sb = mass * b;
      let sc = mass * c;
      for (let j = 0, o = 0; j < i; j++, o += d) {
        const p = x[o];
        const q = x[o + 1];
        const r = d === 3 ? x[o + 2] : 0;
        const kernel = Math.exp(beta * (a * p + b * q + c * r - 1));
        const weight = m[j] * kernel;
        z += weight;
        sa += weight * p;
        sb += weight * q;
        sc += weight * r;
        if (causal) continue;
        const back = mass * kernel;
        total[j] += back;
        vector[o] += back * a;
        vector[o + 1] += back * b;
        if (d === 3) vector[o + 2] += back * c;
      }
      total[i] += z;
      vector[i * d] += sa;
      vector[i * d + 1] += sb;
      if (d === 3) vector[i * d + 2] += sc;
    }
  };
}

/**
 * Fourier series on S^1. With z = x + iy, M_k = sum_j m_j z_j^k and K(phi) = sum_k c_k e^(ik phi):
 * Z = sum_k c_k z^k conj(M_k), and S = sum_k c_k z^k conj(M_{k-1}) as a complex number.
 */
function circle({ beta, causal, degree }) {
  const p = degreeWeights(beta, 2, degree + 1);
  const c = Float64Array.from({ length: degree + 1 }, (_, k) => (k ? p[k] / 2 : p[0]));
  const re = new Float64Array(degree + 2);
  const im = new Float64Array(degree + 2);

  const add = (x, i, mass) => {
    const a = x[2 * i];
    const b = x[2 * i + 1];
    let pr = mass;
    let pi = 0;
    for (let k = 0; k < re.length; k++) {
      re[k] += pr;
      im[k] += pi;
      const next = pr * a - pi * b;
      pi = pr * b + pi * a;
      pr = next;
    }
  };
  const read = (x, i, total, vector) => {
    const a = x[2 * i];
    const b = x[2 * i + 1];
    let z = c[0] * re[0];
    let sr = c[0] * re[1];
    let si = c[0] * im[1];
    let pr = a;
    let pi = b;
    for (let k = 1; k <= degree; k++) {
      const weight = c[k];
      z += 2 * weight * (pr * re[k] + pi * im[k]);
      // z^k conj(M_{k-1}) + conj(z^k) M_{k+1}
      sr += weight * (pr * (re[k - 1] + re[k + 1]) + pi * (im[k - 1] + im[k + 1]));
      si += weight * (pi * (re[k - 1] - re[k + 1]) + pr * (im[k + 1] - im[k - 1]));
      const next = pr * a - pi * b;
      pi = pr * b + pi * a;
      pr = next;
    }
    total[i] = z;
    vector[2 * i] = sr;
    vector[2 * i + 1] = si;
  };
  return series(causal, [re, im], add, read);
}

/**
 * Spherical harmonics on S^2: p_k(z) Re and Im (x + iy)^m, p_k orthonormal polynomials of the index m + 1/2. Four
 * charges, 1 and the three coordinates, with real and imaginary part: eight moments for each (m, k).
 */
function harmonics({ beta, causal, degree }) {
  const p = degreeWeights(beta, 3, degree + 1);
  const size = ((degree + 1) * (degree + 2)) / 2;
  const up = new Float64Array(size);
  const down = new Float64Array(size);
  const weight = new Float64Array(size);
  const first = new Float64Array(degree + 1);
  for (let m = 0, o = 0; m <= degree; m++) {
    first[m] = m ? first[m - 1] * Math.sqrt((m + 0.5) / m) : 1;
    for (let k = 0; k <= degree - m; k++, o++) {
      // p_{k+1} = up t p_k - down p_{k-1}
      up[o] = 1 / recurrence(k + 1, m + 0.5);
      down[o] = recurrence(k, m + 0.5) * up[o];
      weight[o] = ((m ? 2 : 1) * p[m + k]) / (2 * (m + k) + 1);
    }
  }
  const moments = new Float64Array(8 * size);
  const values = new Float64Array(size);
  /** The polynomials p_k of every order at the height t. */
  const fill = (t) => {
    for (let m = 0, o = 0; m <= degree; m++) {
      let before = 0;
      let now = first[m];
      for (let k = 0; k <= degree - m; k++, o++) {
        values[o] = now;
        const next = up[o] * t * now - down[o] * before;
        before = now;
        now = next;
      }
    }
  };

  const add = (x, i, mass) => {
    const a = x[3 * i];
    const b = x[3 * i + 1];
    const t = x[3 * i + 2];
    fill(t);
    let pr = mass;
    let pi = 0;
    for (let m = 0, o = 0; m <= degree; m++) {
      const ra = pr * a;
      const rb = pr * b;
      const rt = pr * t;
      const ia = pi * a;
      const ib = pi * b;
      const it = pi * t;
      for (let k = 0; k <= degree - m; k++, o++) {
        const at = 8 * o;
        const now = values[o];
        moments[at] += now * pr;
        moments[at + 1] += now * ra;
        moments[at + 2] += now * rb;
        moments[at + 3] += now * rt;
        moments[at + 4] += now * pi;
        moments[at + 5] += now * ia;
        moments[at + 6] += now * ib;
        moments[at + 7] += now * it;
      }
      const next = pr * a - pi * b;
      pi = pr * b + pi * a;
      pr = next;
    }
  };
  const read = (x, i, total, vector) => {
    const a = x[3 * i];
    const b = x[3 * i + 1];
    fill(x[3 * i + 2]);
    let pr = 1;
    let pi = 0;
    let z = 0;
    let sa = 0;
    let sb = 0;
    let sc = 0;
    for (let m = 0, o = 0; m <= degree; m++) {
      let r0 = 0;
      let r1 = 0;
      let r2 = 0;
      let r3 = 0;
      let i0 = 0;
      let i1 = 0;
      let i2 = 0;
      let i3 = 0;
      for (let k = 0; k <= degree - m; k++, o++) {
        const at = 8 * o;
        const value = weight[o] * values[o];
        r0 += value * moments[at];
        r1 += value * moments[at + 1];
        r2 += value * moments[at + 2];
        r3 += value * moments[at + 3];
        i0 += value * moments[at + 4];
        i1 += value * moments[at + 5];
        i2 += value * moments[at + 6];
        i3 += value * moments[at + 7];
      }
      z += pr * r0 + pi * i0;
      sa += pr * r1 + pi * i1;
      sb += pr * r2 + pi * i2;
      sc += pr * r3 + pi * i3;
      const next = pr * a - pi * b;
      pi = pr * b + pi * a;
      pr = next;
    }
    total[i] = z;
    vector[3 * i] = sa;
    vector[3 * i + 1] = sb;
    vector[3 * i + 2] = sc;
  };
  return series(causal, [moments], add, read);
}

/** Moments of all tokens, then the sum at each; with a causal mask one token after the other. */
function series(causal, moments, add, read) {
  return (x, m, total, vector) => {
    for (const one of moments) one.fill(0);
    for (let i = 0; i < m.length; i++) {
      add(x, i, m[i]);
      if (causal) read(x, i, total, vector);
    }
    for (let i = 0; i < m.length && !causal; i++) read(x, i, total, vector);
  };
}
