/** Attention as a velocity of tokens on the sphere: softmax (SA) or unnormalised on the clock USA0. */

import { choose } from "./sums.js";

/**
 * @typedef {object} Dynamics
 * @property {number} beta inverse temperature, at least 0
 * @property {"SA" | "USA0"} model
 * @property {boolean} causal whether a token sees itself and earlier tokens alone
 * @property {number[] | null} value the matrix V by rows; null for the identity
 * @property {number} kappa strength of the noise, dX = ... + sqrt(2 kappa) dB
 * @property {number} tol of a step; sums are a hundred times as accurate
 * @property {string} [sum] the name of a sum; left out, the cheapest is chosen
 */

export class Field {
  /** @param {2 | 3} d @param {Float64Array} m masses @param {Dynamics} dynamics */
  constructor(d, m, dynamics) {
    this.d = d;
    this.m = m;
    this.dynamics = dynamics;
    const { beta, causal, tol, sum } = dynamics;
    this.sum = choose({ d, beta, causal, m, tol: tol / 100, name: sum });
    this.total = new Float64Array(m.length);
    this.vector = new Float64Array(m.length * d);
    this.seen = new Float64Array(m.length).fill(1);
    if (causal) {
      let prefix = 0;
      this.seen = m.map((one) => (prefix += one));
    }
  }

  /** The velocity at the unit vectors x, written into v; `total` then holds Z. */
  velocity(x, v) {
    const { d, dynamics, total, vector } = this;
    this.sum.evaluate(x, this.m, total, vector);
    const divisors = dynamics.model === "SA" ? total : this.seen;
    const [a, b, c, e, f, g, h, k, l] = dynamics.value ?? [];
    for (let i = 0, o = 0; i < total.length; i++, o += d) {
      let p = vector[o] / divisors[i];
      let q = vector[o + 1] / divisors[i];
      let r = d === 3 ? vector[o + 2] / divisors[i] : 0;
      if (dynamics.value && d === 2) [p, q] = [a * p + b * q, c * p + e * q];
      if (dynamics.value && d === 3) [p, q, r] = [a * p + b * q + c * r, e * p + f * q + g * r, h * p + k * q + l * r];
      const along = p * x[o] + q * x[o + 1] + (d === 3 ? r * x[o + 2] : 0);
      v[o] = p - along * x[o];
      v[o + 1] = q - along * x[o + 1];
      if (d === 3) v[o + 2] = r - along * x[o + 2];
    }
  }
}
