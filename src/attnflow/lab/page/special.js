/** Bessel quotients, and the kernel e^(beta (u - 1)) by degrees. */

/** Degrees whose size a frame measures and whose growth is predicted. */
export const DEGREES = 12;

/** I_{order+j}(x) / I_{order+j-1}(x) for j = 1, ..., count and x >= 0, by the continued fraction run backwards. */
export function besselRatios(order, x, count) {
  const top = count + 60 + Math.ceil(7 * Math.sqrt(x));
  let ratio = x / (order + top + 0.5 + Math.hypot(order + top + 1.5, x));
  const found = new Float64Array(count);
  for (let j = top; j > 0; j--) {
    ratio = x / (2 * (order + j) + x * ratio);
    if (j <= count) found[j - 1] = ratio;
  }
  return found;
}

/**
 * At least `count` of the weights p_k of e^(beta (u - 1)) = sum_k p_k P_k(u) on S^(d-1), P_k(1) = 1: a probability on
 * degrees, listed until they are e^(-60) of the largest.
 */
export function degreeWeights(beta, d, count = 2) {
  const top = 64 + Math.floor(12 * Math.sqrt(beta));
  const ratios = besselRatios(d / 2 - 1, beta, top);
  const logs = [0];
  for (let k = 1; k <= top && ratios[k - 1] > 0; k++) {
    const more = k === 1 ? d : ((2 * k + d - 2) * (k + d - 3)) / ((2 * k + d - 4) * k);
    logs.push(logs[k - 1] + Math.log(more * ratios[k - 1]));
  }
  const peak = Math.max(...logs);
  const weights = logs.map((log) => Math.exp(log - peak)).filter((_, k) => k < count || logs[k] > peak - 60);
  while (weights.length < count) weights.push(0);
  const total = weights.reduce((sum, one) => sum + one, 0);
  return Float64Array.from(weights, (one) => one / total);
}

/** The smallest K such that the weights beyond degree K sum to at most `bound`. */
export function truncationDegree(weights, bound) {
  let tail = 0;
  for (let k = weights.length - 1; k > 0; k--) {
    tail += weights[k];
    if (tail > bound) return k;
  }
  return 0;
}

/** The factor of p_{k-1} in the recurrence of orthonormal Gegenbauer polynomials of the index a. */
export function recurrence(k, a) {
  return k ? 0.5 * Math.sqrt((k * (k + 2 * a - 1)) / ((k + a) * (k + a - 1))) : 0;
}
