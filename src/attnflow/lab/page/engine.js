/** The engine: tokens that flow, and frames of them with everything that the page draws. It runs in a worker. */

import { clusters, clusterScale } from "./clusters.js";
import { Field } from "./field.js";
import { Lineage } from "./lineage.js";
import { attention, energy, energyOfTotal, modes, overlaps } from "./observe.js";
import { Random } from "./random.js";
import { DEGREES } from "./special.js";
import { masses, positions } from "./starts.js";
import { Stepper } from "./steps.js";

/** Bins of the overlaps, and clusters that a frame describes. */
const BINS = 40;
const DESCRIBED = 200;
/** Added to the seed of the start to get that of the noise. */
const NOISE = 2 ** 40;

/**
 * @typedef {import("./starts.js").Start & import("./field.js").Dynamics} Setting
 *
 * @typedef {object} Frame
 * @property {number} t
 * @property {number} beta
 * @property {Float32Array} positions
 * @property {Uint8Array} names the cluster of each token, followed through time (`lineage.js`)
 * @property {number} count of clusters
 * @property {boolean} condensed
 * @property {number} energy
 * @property {number} order length of the mean token
 * @property {Float32Array} overlaps
 * @property {Float32Array} modes
 * @property {{ size: number, weights: Uint8Array }} attention
 * @property {{ centres: Float64Array, masses: Float64Array, names: number[] }} clusters the heaviest ones
 * @property {{ births: object[], merges: object[] }} tree so far
 * @property {{ name: string, degree: number }} sum
 * @property {number} steps
 */

export class Engine {
  /** @param {Setting} setting */
  constructor(setting) {
    this.setting = { ...setting };
    this.m = masses(setting);
    this.lineage = new Lineage(setting.n);
    this.random = new Random(setting.seed + NOISE);
    this.restart(positions(setting), 0);
  }

  /** Change the dynamics from the time t on, which lies within the last step. */
  set(change, t) {
    const x = this.stepper.at(t);
    Object.assign(this.setting, change);
    this.restart(x, t);
  }

  restart(x, t) {
    const { d, tol, kappa } = this.setting;
    const steps = this.stepper?.steps ?? 0;
    this.field = new Field(d, this.m, this.setting);
    this.stepper = new Stepper(this.field, x, d, { t, tol, kappa, random: this.random });
    this.stepper.steps = steps;
  }

  /** One step towards the time t; whether t is reached. With noise steps end at the times of frames. */
  towards(t) {
    if (this.stepper.t < t) this.stepper.step(this.setting.kappa > 0 ? t : Infinity);
    return this.stepper.t >= t;
  }

  /** @returns {Frame} what is seen at the time t, within the last step */
  frame(t) {
    return this.described(this.stepper.at(t), t);
  }

  /** @returns {Frame} what is seen of tokens at x at the time t */
  described(x, t) {
    const { setting, m, field, stepper } = this;
    const { d, beta } = setting;
    const scale = clusterScale(beta);
    const found = clusters(x, m, d, scale);
    const names = this.lineage.follow(t, found, scale, m);
    const kept = Math.min(found.count, DESCRIBED);
    const first = new Array(kept).fill(255);
    found.labels.forEach((k, i) => k < kept && (first[k] = names[i]));
    return {
      t,
      beta,
      positions: Float32Array.from(x),
      names,
      count: found.count,
      condensed: found.condensed,
      energy: this.energy(x),
      order: orderParameter(x, m, d),
      overlaps: overlaps(x, d, BINS),
      modes: modes(x, m, d, DEGREES),
      attention: attention(x, m, d, setting, found.labels),
      clusters: { centres: found.centres.slice(0, kept * d), masses: found.masses.slice(0, kept), names: first },
      tree: { births: this.lineage.births, merges: this.lineage.merges },
      sum: { name: field.sum.name, degree: field.sum.degree },
      steps: stepper.steps,
    };
  }

  energy(x) {
    const { d, beta, causal, tol } = this.setting;
    if (causal || beta < 1e-5) return energy(x, this.m, d, beta, tol / 100);
    this.field.sum.evaluate(x, this.m, this.field.total, this.field.vector);
    return energyOfTotal(this.field.total, this.m, beta);
  }
}

function orderParameter(x, m, d) {
  const mean = new Float64Array(d);
  for (let i = 0; i < m.length; i++) for (let c = 0; c < d; c++) mean[c] += m[i] * x[i * d + c];
  return Math.hypot(...mean);
}
