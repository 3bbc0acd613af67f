/** What theory says beside each panel, in numbers for the panel and in words with the conditions. */

import { shown } from "./axes.js";
import { clusterScale } from "./clusters.js";
import { DEGREES } from "./special.js";
import { dominantDegree, expectedModes, growthRates, nextMerge } from "./theory.js";

/** The size of a degree at which linear growth is surely over. */
const OVER = 0.6;

/**
 * @typedef {object} Prediction
 * @property {{ t: number, logTime: number, energy: number, names: number[] } | null} next merge
 * @property {number | null} modes expected number of modes at the start
 * @property {number | null} fastest degree
 * @property {number[] | null} grown size of each degree by linear theory
 * @property {Record<string, string>} words for each panel
 */

/** @param {import("./engine.js").Setting} setting @param {import("./engine.js").Frame[]} frames @returns {Prediction} */
export function predict(setting, frames, index) {
  const frame = frames[index];
  const { d, beta, model } = { ...setting, beta: frame.beta };
  const plain = !setting.causal && setting.value === null;
  const merging = plain && setting.kappa === 0;
  const linear = !setting.causal && (setting.value === null || isMinus(setting));
  const scale = clusterScale(beta);
  const merge = merging && frame.condensed ? nextMerge(frame.clusters, d, { beta, model }, scale) : null;
  const next = merge && {
    ...merge,
    t: frame.t + Math.exp(Math.min(merge.logTime, 200)),
    names: merge.pair.map((k) => frame.clusters.names[k]),
  };
  const iid = setting.start === "uniform";
  const modes = d === 2 && merging && iid ? expectedModes(beta) : null;
  const fastest = linear && !isMinus(setting) ? dominantDegree(beta, d) : null;
  const sizes = linear ? grownModes(setting, frames, index) : null;
  const grown = sizes && Math.max(...sizes) < OVER ? sizes : null;
  return { next, modes, fastest, grown, words: words(setting, frame, { next, modes, fastest, grown, plain, merging, linear }) };
}

function isMinus({ value, d }) {
  return value !== null && value.every((one, k) => one === (k % (d + 1) ? 0 : -1));
}

/** The sizes of degrees at the start, grown at the rates of the betas since then. */
function grownModes(setting, frames, index) {
  const { d, model, kappa } = setting;
  const exponents = new Array(DEGREES).fill(0);
  const known = new Map();
  const sign = isMinus(setting) ? -1 : 1;
  for (let k = 1; k <= index; k++) {
    const { beta, t } = frames[k];
    if (!known.has(beta)) {
      const free = growthRates(beta, d, DEGREES, { model });
      known.set(beta, free.map((rate, j) => sign * rate - kappa * (j + 1) * (j + d - 1)));
    }
    const rates = known.get(beta);
    for (let j = 0; j < DEGREES; j++) exponents[j] += rates[j] * (t - frames[k - 1].t);
  }
  return exponents.map((one, j) => frames[0].modes[j] * Math.exp(one));
}

function words(setting, frame, { next, modes, fastest, grown, plain, merging, linear }) {
  const { d, kappa, n } = setting;
  const { beta } = frame;
  const why = setting.causal ? "a causal mask" : !plain ? "this V" : "noise";
  const found = {};
  found.energy = next
    ? `Next plateau: E = ${shown(next.energy)} from t ≈ ${time(next)} on, when the closest pair has merged. Point clusters, the pair alone.`
    : !merging
      ? `No closed form with ${why}; E need not rise.`
      : frame.count === 1 && frame.condensed
        ? "Consensus: E = 0, from almost every start."
        : "E never falls. A prediction waits for condensed clusters.";
  found.counts = modes
    ? `Modes of iid tokens: ${shown(modes)}; √(3β/2) = ${shown(Math.sqrt(1.5 * beta))}. ${n < 4 * modes ? "Too few tokens for this mean. " : ""}Many tokens; pale: not condensed, the count means nothing.`
    : d === 3 && merging
      ? `Theory has no count on S²; the pattern has the scale of degree ${fastest}. Pale: not condensed, the count means nothing.`
      : "No closed form for this start, mask, V or noise. Pale: not condensed, the count means nothing.";
  found.tree = next
    ? `Closest pair: angle ${shown(next.angle)}, linked after t = ${time(next)} (dashed). Two point clusters alone.`
    : merging
      ? "A branch begins where a cluster has condensed."
      : `No merge times with ${why}.`;
  found.overlaps = `Dashed: overlaps of iid uniform tokens, ${d === 2 ? "1/(π√(1−u²))" : "1/2"}. Consensus is u = 1.`;
  found.modes = fastest
    ? `Degree ${fastest} grows fastest, rate ${shown(rateOf(setting, beta, fastest))}${kappa ? " with noise" : ""}. ${grown ? "Marks: linear growth of the start, while sizes are small." : "The linear phase is over."}`
    : linear
      ? "V = −I: every degree decays at the rate at which it grows for V = I."
      : `No growth rates with ${setting.causal ? "a causal mask" : "this V"}.`;
  found.attention = setting.causal
    ? "Tokens in their order: what comes later is not seen. Each row relative to its largest weight."
    : `Tokens cluster by cluster. Two at an angle a have weight e^(−β(1 − cos a)): range β^(−1/2) = ${shown(beta ? 1 / Math.sqrt(beta) : Infinity)}.`;
  return found;
}

function rateOf({ d, model, kappa }, beta, degree) {
  return growthRates(beta, d, degree, { model, kappa })[degree - 1];
}

function time({ t, logTime }) {
  return logTime < 200 ? shown(t) : `10^${shown(logTime / Math.LN10)}`;
}
