/** The frames of one flow so far, for the time cursor: thinned out when they become too many. */

/** Bytes of frames that are kept, at most. */
const ROOM = 6e7;

export class History {
  constructor(n, d) {
    const each = n * (4 * d + 1) + 6000;
    this.limit = Math.max(60, Math.min(1500, Math.floor(ROOM / each)));
    /** @type {import("./engine.js").Frame[]} */
    this.frames = [];
  }

  /** Keep a frame. When there is no more room every second one goes; whether that happened. */
  push(frame) {
    this.frames.push(frame);
    if (this.frames.length <= this.limit) return false;
    const last = this.frames.length - 1;
    this.frames = this.frames.filter((_, k) => k % 2 === 0 || k === last);
    return true;
  }

  /** The index of the last frame that is not after t, but for rounding. */
  indexAt(given) {
    const t = given * (1 + 1e-12);
    let [low, high] = [0, this.frames.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.frames[middle].t <= t) low = middle;
      else high = middle - 1;
    }
    return Math.max(low, 0);
  }

  /** Plateaus, as `attnflow.observe.plateaus` finds them. */
  plateaus() {
    return plateaus(this.frames);
  }
}

/** Frames in stretches of one beta. @param {{ beta: number | null }[]} frames */
export function byBeta(frames) {
  const stretches = [];
  frames.forEach((frame, k) => (k && frame.beta === frames[k - 1].beta ? stretches.at(-1).push(frame) : stretches.push([frame])));
  return stretches;
}

/**
 * Stretches with condensed tokens and one cluster count that at least double their time; the last stretch of one
 * cluster counts whatever it lasts.
 * @param {{ t: number, count: number, condensed: boolean, energy: number }[]} frames
 */
export function plateaus(frames) {
  const found = [];
  let start = 0;
  for (let k = 1; k <= frames.length; k++) {
    const first = frames[start];
    if (k < frames.length && frames[k].count === first.count && frames[k].condensed === first.condensed) continue;
    const begin = first.t === 0 && start + 1 < k ? start + 1 : start;
    const lasts = frames[k - 1].t >= 2 * frames[begin].t && frames[begin].t > 0;
    if (first.condensed && (lasts || (k === frames.length && first.count === 1))) {
      const energies = frames
        .slice(start, k)
        .map((one) => one.energy)
        .sort((a, b) => a - b);
      const half = energies.length / 2;
      const energy = (energies[Math.floor(half)] + energies[Math.ceil(half) - 1]) / 2;
      found.push({ start: first.t, end: frames[k - 1].t, clusters: first.count, energy });
    }
    start = k;
  }
  return found;
}
