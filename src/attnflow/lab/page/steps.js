/**
 * Adaptive steps of Bogacki and Shampine, order 3 with an error estimate of order 2, and cubic interpolation between
 * them. The field is evaluated at unit vectors and every step ends on the sphere, as in the library.
 */

import { retract } from "./starts.js";

/** The longest step of a flow with noise: after each the tokens are moved at random. */
const NOISY = 0.02;

export class Stepper {
  /**
   * @param {{ velocity: (x: Float64Array, v: Float64Array) => void }} field
   * @param {Float64Array} x unit vectors, which the stepper keeps
   * @param {number} d
   * @param {{ t: number, tol: number, kappa: number, random: { normal: () => number } }} options
   */
  constructor(field, x, d, { t, tol, kappa, random }) {
    this.field = field;
    this.x = x;
    this.d = d;
    this.t = t;
    this.tol = tol;
    this.kappa = kappa;
    this.random = random;
    this.h = 0.01;
    this.steps = 0;
    this.k = [0, 1, 2, 3].map(() => new Float64Array(x.length));
    this.stage = new Float64Array(x.length);
    this.before = { t, x: x.slice(), v: this.k[0] };
    field.velocity(x, this.k[0]);
  }

  /** One accepted step, which ends at `end` at the latest. */
  step(end) {
    const { field, x, d, k, stage } = this;
    const moved = (h, ...parts) => {
      for (let i = 0; i < x.length; i++) {
        let sum = 0;
        for (let p = 0; p < parts.length; p++) sum += parts[p] * k[p][i];
        stage[i] = x[i] + h * sum;
      }
      return retract(stage, d);
    };
    for (;;) {
      const longest = this.kappa > 0 ? Math.min(this.h, NOISY) : this.h;
      const h = Math.min(longest, end - this.t);
      field.velocity(moved(h, 1 / 2), k[1]);
      field.velocity(moved(h, 0, 3 / 4), k[2]);
      field.velocity(moved(h, 2 / 9, 1 / 3, 4 / 9), k[3]);
      let error = 0;
      for (let i = 0; i < x.length; i++) {
        error = Math.max(error, Math.abs((-5 * k[0][i] + 6 * k[1][i] + 8 * k[2][i] - 9 * k[3][i]) / 72));
      }
      const ratio = (h * error) / this.tol;
      const next = h * Math.min(5, Math.max(0.2, 0.9 * ratio ** (-1 / 3)));
      if (ratio > 1) {
        this.h = next;
        continue;
      }
      if (h === longest || next < this.h) this.h = next; // a step that was cut short says nothing about longer ones
      this.accept(h);
      return;
    }
  }

  accept(h) {
    const { x, stage, k } = this;
    this.before = { t: this.t, x: x.slice(), v: k[0] };
    x.set(stage);
    this.t += h;
    this.steps += 1;
    if (this.kappa > 0) {
      this.kick(h);
      this.field.velocity(x, k[3]);
    }
    this.k = [k[3], k[1], k[2], k[0].slice()];
  }

  /** The noise of one step: the nearest point of the sphere to x + sqrt(2 kappa h) P_x W. */
  kick(h) {
    const { x, d, random } = this;
    const size = Math.sqrt(2 * this.kappa * h);
    for (let o = 0; o < x.length; o += d) {
      const w = Array.from({ length: d }, () => size * random.normal());
      const along = w.reduce((sum, one, c) => sum + one * x[o + c], 0);
      for (let c = 0; c < d; c++) x[o + c] += w[c] - along * x[o + c];
    }
    retract(x, d);
  }

  /** Positions at a time within the last step, by Hermite's cubic polynomial. */
  at(t) {
    const { before, x, d } = this;
    const h = this.t - before.t;
    if (h === 0 || t >= this.t) return x.slice();
    const s = (t - before.t) / h;
    const [a, b] = [h * s * (1 - s) ** 2, h * s * s * (s - 1)];
    const end = s * s * (3 - 2 * s);
    return retract(
      x.map((now, i) => (1 - end) * before.x[i] + end * now + a * before.v[i] + b * this.k[0][i]),
      d,
    );
  }
}
