/** Tokens that the library followed through long times, as a third source of frames: times and angles on the circle. */

import { Engine } from "./engine.js";
import { STAIRCASE } from "./staircase.js";

/** Angles are whole numbers of this part of a turn, 16 bits each. */
const TURN = 65536;

/** Frames of a recording, each described as the engine describes its own. */
export class Recording {
  constructor() {
    const { beta, angles, times } = STAIRCASE;
    const d = 2;
    this.turns = new Uint16Array(Uint8Array.from(atob(angles), (letter) => letter.charCodeAt(0)).buffer);
    this.n = this.turns.length / times.length;
    this.next = 0;
    const setting = { d, n: this.n, beta, seed: 0, start: "uniform", jitter: 0, zipf: 0, model: "SA", causal: false };
    this.facts = { ...setting, value: null, kappa: 0, tol: 1e-6, frames: times.length, name: "staircase" };
    this.engine = new Engine(this.facts);
  }

  /** Frames have times of their own: the next one is always there. */
  towards() {
    return this.next < STAIRCASE.times.length;
  }

  set() {}

  frame() {
    const k = this.next++;
    const x = new Float64Array(2 * this.n);
    this.turns.subarray(k * this.n, (k + 1) * this.n).forEach((turn, i) => {
      x[2 * i] = Math.cos((2 * Math.PI * turn) / TURN);
      x[2 * i + 1] = Math.sin((2 * Math.PI * turn) / TURN);
    });
    return { ...this.engine.described(x, STAIRCASE.times[k]), last: this.next === STAIRCASE.times.length };
  }
}
