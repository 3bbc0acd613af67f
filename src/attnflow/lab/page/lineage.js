/**
 * Clusters followed through time: a cluster gets a name when it has condensed, keeps it, and gives it to what it merges
 * with if it is the heavier one. Names choose colours, and merges make the tree.
 */

/** The name of tokens in clusters that have not condensed. */
export const NONE = 255;
/** Clusters that can have names at the same time. */
const NAMES = 240;

export class Lineage {
  constructor(n) {
    this.names = new Uint8Array(n).fill(NONE);
    /** @type {{ t: number, name: number, mass: number }[]} */
    this.births = [];
    /** Ends of branches, by their number: merged into another, or -1 where a cluster has fallen apart.
     * @type {{ t: number, name: number, into: number }[]} */
    this.merges = [];
    this.alive = new Map(); // name -> index of its birth
  }

  /**
   * The names of the tokens at time t.
   * @param {number} t
   * @param {import("./clusters.js").Clusters} found
   * @param {number} scale
   * @param {Float64Array} m
   */
  follow(t, found, scale, m) {
    const shares = Array.from({ length: found.count }, () => new Map());
    this.names.forEach((name, i) => {
      if (name === NONE) return;
      const share = shares[found.labels[i]];
      share.set(name, (share.get(name) ?? 0) + m[i]);
    });
    const taken = new Map();
    const own = shares.map((share, k) => {
      if (found.radii[k] > scale) return NONE;
      const old = [...share.keys()].filter((name) => !taken.has(name)).sort((a, b) => share.get(b) - share.get(a));
      if (old.length) taken.set(old[0], k);
      return old.length ? old[0] : -1;
    });
    // names that nobody kept: merged into the cluster that holds most of their tokens
    for (const name of [...this.alive.keys()]) {
      if (taken.has(name)) continue;
      const heir = shares.reduce(
        (best, share, k) => ((share.get(name) ?? 0) > (shares[best].get(name) ?? 0) ? k : best),
        0,
      );
      const into = taken.has(own[heir]) ? this.alive.get(own[heir]) : -1;
      this.merges.push({ t, name: this.alive.get(name), into });
      this.alive.delete(name);
    }
    for (let k = 0, free = 0; k < own.length; k++) {
      if (own[k] !== -1) continue;
      while (this.alive.has(free)) free += 1;
      own[k] = free < NAMES ? free : NONE;
      if (own[k] === NONE) continue;
      this.alive.set(free, this.births.length);
      this.births.push({ t, name: free, mass: found.masses[k] });
    }
    this.names = Uint8Array.from(found.labels, (k) => own[k]);
    return this.names;
  }
}
