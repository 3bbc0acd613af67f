/** What theory says beside each panel, in numbers for the panel and in words with the conditions. */

import { shown, shownExp } from "./axes.js";
import { clusterScale } from "./clusters.js";
import { byBeta } from "./history.js";
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

/**
 * @param {import("./engine.js").Setting} setting
 * @param {import("./engine.js").Frame[]} frames
 * @returns {Prediction}
 */
export function predict(setting, frames, index) {
  const frame = frames[index];
  const unknown = setting.remote && (!setting.theory || frame.beta === null || !frame.modes);
  const changed = byBeta(frames).length > 1 ? " Dotted: β changed, and E depends on β." : "";
  if (unknown) return { next: null, modes: null, fastest: null, grown: null, words: wordsOfRemote(setting, frame, changed) };
  const { model } = setting;
  const { beta } = frame;
  const d = fullOf(setting);
  const plain = !setting.causal && setting.value === null;
  const merging = plain && setting.kappa === 0 && d <= 3;
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
  return {
    next,
    modes,
    fastest,
    grown,
    words: words(setting, frame, { next, modes, fastest, grown, merging, linear, changed }),
  };
}

/** Coordinates of a token, whatever is drawn of them. */
function fullOf({ full, d }) {
  return full ?? d;
}

function isMinus({ value, d }) {
  return value !== null && value.every((one, k) => one === (k % (d + 1) ? 0 : -1));
}

/** The sizes of degrees at the start, grown at the rates of the betas since then. */
function grownModes(setting, frames, index) {
  const { model, kappa } = setting;
  const d = fullOf(setting);
  const exponents = new Array(DEGREES).fill(0);
  const known = new Map();
  const sign = isMinus(setting) ? -1 : 1;
  for (let k = 1; k <= index; k++) {
    const { beta, t } = frames[k];
    if (!known.has(beta)) {
      const free = growthRates(beta, d, DEGREES, { model });
      known.set(
        beta,
        free.map((rate, j) => sign * rate - kappa * (j + 1) * (j + d - 1)),
      );
    }
    const rates = known.get(beta);
    for (let j = 0; j < DEGREES; j++) exponents[j] += rates[j] * (t - frames[k - 1].t);
  }
  return exponents.map((one, j) => frames[0].modes[j] * Math.exp(one));
}

/** Sentences beside frames that the engine in Python sends. */
function wordsOfRemote({ full, n }, { beta }, changed) {
  const few = n > 512 ? " Of 512 tokens." : "";
  return {
    energy: `Computed by Python; \`attnflow predict\` says what theory has.${changed}`,
    counts: `Tokens linked within ${beta === null ? "0.1" : "β^(−1/2)"}. ${PALE}`,
    tree: "A branch begins where a cluster has condensed.",
    overlaps: `Dashed: iid uniform tokens on S^${full - 1}. Consensus is u = 1.${few}`,
    modes: `Root of Σ mᵢ mⱼ P_k(⟨xᵢ, xⱼ⟩), 1 for a single point.${few}`,
    attention: "Each row relative to its largest weight, among 64 tokens at most.",
    sweep: SWEEP,
  };
}

const SWEEP = "Numbers of the sweep at the last time; press on a value to go there. Bars: standard errors of the mean over seeds.";
const PALE = "Pale line: clusters have not formed yet.";

/** Sentences for the panels; `about` has the predictions and for which settings theory has them. */
function words(setting, frame, about) {
  const d = fullOf(setting);
  const why = setting.causal ? "a causal mask" : setting.value !== null ? "this V" : setting.kappa ? "noise" : `S^${d - 1}`;
  const few = setting.remote && setting.n > 512 ? " Of 512 tokens." : "";
  const density = d === 2 ? ", density 1/(π√(1−u²))" : d === 3 ? ", density 1/2" : ` on S^${d - 1}`;
  return {
    energy: `${wordsOfEnergy(setting, frame, about, why)}${about.changed}`,
    counts: wordsOfCounts(setting, frame, about),
    tree: wordsOfTree(about, why),
    overlaps: `Dashed: iid uniform tokens${density}. Consensus is u = 1.${few}`,
    modes: wordsOfModes(setting, frame, about, why),
    attention: wordsOfAttention(setting, frame),
    sweep: SWEEP,
  };
}

function wordsOfEnergy({ d }, { count, condensed }, { next, merging }, why) {
  if (next) {
    const plateau = `Next plateau: E = ${shown(next.energy)} from t ≈ ${time(next)} on`;
    return `${plateau}, after the closest pair has merged. For isolated point clusters.`;
  }
  if (!merging && why.startsWith("S^")) return `E never falls at a fixed β. No merge times on ${why}: clusters are seen in ${d} coordinates.`;
  if (!merging) return `No closed form with ${why}; E need not rise.`;
  if (condensed && count === 1) return "Consensus: E = 0, from almost every start.";
  return "E never falls at a fixed β. A prediction needs clusters that have formed and are separate.";
}

function wordsOfCounts({ d, n, full }, { beta }, { modes, merging, fastest }) {
  if (modes) {
    const few = n < 4 * modes ? "Too few tokens for this mean. " : "";
    return `Modes of many iid tokens: ${shown(modes)}; √(3β/2) = ${shown(Math.sqrt(1.5 * beta))}. ${few}${PALE}`;
  }
  if ((full ?? d) > 3) return `Tokens linked within β^(−1/2); the spacing is about that of degree ${fastest}. ${PALE}`;
  if (d === 3 && merging) return `No formula for the number of clusters on S²; their spacing is about that of degree ${fastest}. ${PALE}`;
  return `No closed form for this start, mask, V or noise. ${PALE}`;
}

function wordsOfTree({ next, merging }, why) {
  if (!merging) return `No merge times ${why.startsWith("S^") ? "on" : "with"} ${why}.`;
  if (!next) return "A branch begins where a cluster has condensed.";
  return `Closest pair: angle ${shown(next.angle)}, linked at t ≈ ${time(next)} (dashed), as isolated points.`;
}

function wordsOfModes(setting, { beta }, { fastest, grown, linear }, why) {
  if (!linear) return `No growth rates with ${why}.`;
  if (!fastest) return "V = −I: every degree decays at the rate at which it grows for V = I.";
  const rate = shown(rateOf(setting, beta, fastest));
  const noisy = setting.kappa ? " with noise" : "";
  const phase = grown ? "Marks: linear growth of the start, while sizes are small." : "The linear phase is over.";
  return `Degree ${fastest} grows fastest, rate ${rate}${noisy}. ${phase}`;
}

function wordsOfAttention({ causal }, { beta }) {
  if (causal) return "Tokens in their order: what comes later is not seen. Each row relative to its largest weight.";
  const range = shown(beta ? 1 / Math.sqrt(beta) : Infinity);
  return `Tokens cluster by cluster. At an angle a the weight is e^(−β(1 − cos a)): range β^(−1/2) = ${range}.`;
}

function rateOf(setting, beta, degree) {
  const { model, kappa } = setting;
  return growthRates(beta, fullOf(setting), degree, { model, kappa })[degree - 1];
}

function time({ t, logTime }) {
  return logTime < 200 ? shown(t) : shownExp(logTime);
}
