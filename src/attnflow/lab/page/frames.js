/** Frames as bytes, as `lab/frames.py` writes them: a header, a text in JSON, arrays. */

import { Lineage, NONE } from "./lineage.js";

const TYPES = {
  "<f4": Float32Array,
  "<f8": Float64Array,
  "|u1": Uint8Array,
  "<u2": Uint16Array,
  "<u4": Uint32Array,
  "<i2": Int16Array,
};

/** What a frame says, with its arrays by name. @param {ArrayBuffer} buffer */
export function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(4, true);
  const head = new Uint8Array(buffer, 0, 8 + length);
  if (String.fromCharCode(...head.subarray(0, 4)) !== "AFL1") throw new Error("these bytes are no frame of the lab");
  const { arrays, ...said } = JSON.parse(String.fromCharCode(...head.subarray(8)));
  let at = 8 + length;
  for (const [name, type, shape] of arrays) {
    const count = shape.reduce((product, one) => product * one, 1);
    said[name] = new TYPES[type](buffer, at, count);
    at += 8 * Math.ceil((count * TYPES[type].BYTES_PER_ELEMENT) / 8);
  }
  return said;
}

/** Makes frames of the page of what was unpacked, one after the other: names of clusters, and the tree so far. */
export class Unpacker {
  /** @param {{ n: number, masses: number[] | null }} facts */
  constructor({ n, masses }) {
    this.n = n;
    this.masses = Float64Array.from(masses ?? new Array(n).fill(1 / n));
    this.lineage = new Lineage(n);
  }

  /** @returns {import("./engine.js").Frame} */
  frame(said) {
    const { t, labels, radii, cluster_masses: masses, centres, attention, scale, count } = said;
    const found = labels && { labels, count, radii, masses };
    const names = found ? this.lineage.follow(t, found, scale, this.masses) : new Uint8Array(this.n).fill(NONE);
    const kept = found ? centres.length / (said.positions.length / this.n) : 0;
    const first = new Array(kept).fill(NONE);
    labels?.forEach((k, i) => k < kept && (first[k] = names[i]));
    return {
      t,
      beta: said.beta,
      positions: said.positions,
      names,
      count,
      condensed: said.condensed,
      energy: said.energy ?? null,
      order: said.order,
      overlaps: said.overlaps ?? null,
      modes: said.modes ?? null,
      attention: attention ? { size: Math.sqrt(attention.length), weights: attention } : null,
      clusters: { centres: Float64Array.from(centres ?? []), masses: masses?.subarray(0, kept) ?? [], names: first },
      tree: { births: this.lineage.births, merges: this.lineage.merges },
      counted: Boolean(found),
      weights: said.masses ?? null,
      sum: null,
      steps: 0,
    };
  }
}
