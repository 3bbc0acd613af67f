/**
 * What closed-form theory says about a setting: ports of `attnflow.theory`, which tests compare with the original.
 * Predictions of `merging` are for clusters as points and for a pair that is alone.
 */

import { angleBetween } from "./clusters.js";
import { besselRatios, degreeWeights } from "./special.js";

/** Nodes and weights of Gauss and Legendre on [-1, 1], by Newton's method. */
const [NODES, WEIGHTS] = legendre(16);
/** Pairs of clusters, the closest first, whose merge times are compared. */
const COMPARED = 12;

/**
 * Growth rates of harmonics of degree 1, ..., count around the uniform measure, lowered by noise:
 * k (k+d-2) (l_k/(beta l_0) - kappa), times e^(-beta) l_0 in the first term for USA0.
 */
export function growthRates(beta, d, count, { model = "SA", kappa = 0 } = {}) {
  const x = Math.max(beta, 1e-12);
  const clock = model === "SA" ? 1 : degreeWeights(beta, d)[0];
  let product = clock / x;
  return Array.from(besselRatios(d / 2 - 1, x, count), (ratio, j) => {
    product *= ratio;
    return (j + 1) * (j + d - 1) * (product - kappa);
  });
}

/** The degree that grows fastest. */
export function dominantDegree(beta, d) {
  const rates = growthRates(beta, d, 10 + Math.floor(2 * Math.sqrt(beta)));
  return rates.indexOf(Math.max(...rates)) + 1;
}

/** Expected modes of sum_i e^(beta cos(t - theta_i)), theta iid uniform, n -> infinity; near sqrt(3 beta/2). */
export function expectedModes(beta) {
  let power = 1;
  let [above, below] = [1, 1];
  besselRatios(1, beta, 30 + Math.ceil(7 * Math.sqrt(beta))).forEach((ratio, j) => {
    power *= ratio * ratio;
    above += (j + 2) ** 4 * power;
    below += (j + 2) ** 2 * power;
  });
  return Math.sqrt(above / below);
}

/**
 * Natural logarithm of the time in which two clusters come from `angle` to the angle `until`.
 * With u = 1 - cos, E = e^(beta u) and z = 2 log tan(angle/2): the integral of h dz/2, where h is E/(m1 + m2) for USA0
 * and (m1 E + m2)(m2 E + m1)/((m1^2 + m2^2) E + 2 m1 m2) for SA.
 */
export function logMergeTime(angle, beta, [m1, m2], until, model = "SA") {
  const [k1, k2] = [Math.log(m1 / (m1 + m2)), Math.log(m2 / (m1 + m2))];
  const [squares, product] = [logAdd(2 * k1, 2 * k2), Math.LN2 + k1 + k2];
  const slowness = (u) => {
    const grown = beta * u;
    if (model !== "SA") return grown - Math.log(m1 + m2);
    return logAdd(k1 + grown, k2) + logAdd(k2 + grown, k1) - logAdd(squares + grown, product);
  };
  const z = (a) => 2 * Math.log(Math.tan(a / 2));
  const u = (a) => 2 * Math.sin(a / 2) ** 2;
  // panels no wider than 1 in z and 2/beta in u
  const edges = [z(until), z(angle)];
  for (let k = Math.ceil(edges[0]); k < edges[1]; k++) edges.push(k);
  const count = Math.ceil((beta * (u(angle) - u(until))) / 2);
  for (let k = 1; k < count; k++) {
    const at = u(until) + ((u(angle) - u(until)) * k) / count;
    edges.push(Math.log(at / (2 - at)));
  }
  edges.sort((a, b) => a - b);
  const height = slowness(u(angle));
  let sum = 0;
  for (let k = 1; k < edges.length; k++) {
    const half = (edges[k] - edges[k - 1]) / 2;
    NODES.forEach((node, j) => {
      const at = 2 / (1 + Math.exp(-(edges[k - 1] + half * (1 + node))));
      sum += half * WEIGHTS[j] * Math.exp(slowness(at) - height);
    });
  }
  return height + Math.log(sum / 2);
}

/** The angle that cluster 1 travels towards cluster 2 until they meet. */
export function meetingPoint(angle, beta, [m1, m2], model = "SA") {
  if (model !== "SA") return (angle * m2) / (m1 + m2);
  const panels = Math.ceil(angle * Math.sqrt(1 + beta));
  const half = angle / panels / 2;
  let sum = 0;
  for (let k = 0; k < panels; k++) {
    NODES.forEach((node, j) => {
      const q = Math.exp(-2 * beta * Math.sin(((2 * k + 1 + node) * half) / 2) ** 2);
      sum += (half * WEIGHTS[j] * m2 * (m2 + m1 * q)) / (m1 * m1 + m2 * m2 + 2 * m1 * m2 * q);
    });
  }
  return sum;
}

/** The energy of point clusters. */
export function pointEnergy(centres, masses, d, beta) {
  let sum = 0;
  for (let i = 0; i < masses.length; i++) {
    for (let j = 0; j < i; j++) {
      const drop = 2 * Math.sin(angleBetween(centres, i, centres, j, d) / 2) ** 2;
      sum += masses[i] * masses[j] * (beta ? Math.expm1(-beta * drop) / beta : -drop);
    }
  }
  return sum;
}

/**
 * The merge that comes next: its pair, the logarithm of the time until the pair is linked (at the angle `scale`), and
 * the energy of the plateau after it. Null for one cluster, or while a pair is that close already.
 */
export function nextMerge({ centres, masses }, d, { beta, model }, scale) {
  const pairs = [];
  for (let i = 0; i < masses.length; i++) {
    for (let j = 0; j < i; j++) pairs.push({ pair: [j, i], angle: angleBetween(centres, i, centres, j, d) });
  }
  pairs.sort((a, b) => a.angle - b.angle);
  const near = pairs.slice(0, COMPARED).filter(({ angle }) => angle < Math.PI - 1e-6);
  if (!near.length || near[0].angle <= scale) return null;
  const lives = near.map(({ pair, angle }) => {
    const [i, j] = pair;
    return { pair, angle, logTime: logMergeTime(angle, beta, [masses[i], masses[j]], scale, model) };
  });
  const first = lives.reduce((a, b) => (b.logTime < a.logTime ? b : a));
  const [i, j] = first.pair;
  const way = meetingPoint(first.angle, beta, [masses[i], masses[j]], model);
  const after = { centres: [...centres], masses: [...masses] };
  for (let c = 0; c < d; c++) {
    const met = Math.sin(first.angle - way) * centres[i * d + c] + Math.sin(way) * centres[j * d + c];
    after.centres[i * d + c] = met / Math.sin(first.angle);
  }
  const norm = Math.hypot(...after.centres.slice(i * d, i * d + d));
  for (let c = 0; c < d; c++) after.centres[i * d + c] /= norm;
  after.masses[i] += after.masses[j];
  after.masses.splice(j, 1);
  after.centres.splice(j * d, d);
  return { ...first, energy: pointEnergy(after.centres, after.masses, d, beta) };
}

function logAdd(a, b) {
  const [low, high] = a < b ? [a, b] : [b, a];
  return high + Math.log1p(Math.exp(low - high));
}

function legendre(count) {
  const [nodes, weights] = [[], []];
  for (let k = 0; k < count; k++) {
    let x = Math.cos((Math.PI * (k + 0.75)) / (count + 0.5));
    let slope = 1;
    for (let turn = 0; turn < 50; turn++) {
      let [before, now] = [1, x];
      for (let j = 2; j <= count; j++) [before, now] = [now, ((2 * j - 1) * x * now - (j - 1) * before) / j];
      slope = (count * (x * now - before)) / (x * x - 1);
      const step = now / slope;
      x -= step;
      if (Math.abs(step) < 1e-16) break;
    }
    nodes.push(x);
    weights.push(2 / ((1 - x * x) * slope * slope));
  }
  return [nodes, weights];
}
