/** Clusters: connected components of tokens linked within an angle, found exactly as in `observe.clusters`. */

/** The linking angle of an inverse temperature: beta^(-1/2), at most 0.5. */
export function clusterScale(beta) {
  return beta > 4 ? 1 / Math.sqrt(beta) : 0.5;
}

/**
 * @typedef {object} Clusters
 * @property {Int32Array} labels number of the cluster of each token, the largest mass first
 * @property {number} count
 * @property {Float64Array} masses
 * @property {Float64Array} centres d numbers a cluster
 * @property {Float64Array} radii angle from the centre to the farthest token
 * @property {boolean} condensed whether every cluster is smaller than the linking angle
 */

/** @param {Float64Array} x @param {Float64Array} m @param {number} d @param {number} scale @returns {Clusters} */
export function clusters(x, m, d, scale) {
  return described(x, m, d, scale, d === 2 ? onCircle(x, scale) : onSphere(x, scale));
}

/** A name of its component for each token, on the circle: angles in order, cut at wide gaps. */
function onCircle(x, scale) {
  const n = x.length / 2;
  const angle = Float64Array.from({ length: n }, (_, i) => Math.atan2(x[2 * i + 1], x[2 * i]));
  const order = angle.slice().sort();
  const cuts = [];
  for (let k = 1; k < n; k++) if (order[k] - order[k - 1] > scale) cuts.push(order[k]);
  const around = order[0] + 2 * Math.PI - order[n - 1] <= scale;
  return Int32Array.from(angle, (one) => {
    let [low, high] = [0, cuts.length]; // the number of cuts that are not beyond the angle
    while (low < high) {
      const middle = (low + high) >> 1;
      if (cuts[middle] <= one) low = middle + 1;
      else high = middle;
    }
    return around && low === cuts.length ? 0 : low;
  });
}

/**
 * The same on S^2. Tokens in one cube of diagonal `chord` are linked; two cubes are compared by the boxes around their
 * tokens, and token by token only if the boxes do not decide.
 */
function onSphere(x, scale) {
  const chord = 2 * Math.sin(scale / 2);
  const side = chord / Math.sqrt(3);
  const row = Math.ceil(2 / side) + 6;
  const cells = new Map();
  for (let i = 0; i < x.length / 3; i++) {
    const place = (c) => Math.floor((x[3 * i + c] + 1) / side) + 2;
    const key = (place(0) * row + place(1)) * row + place(2);
    let cell = cells.get(key);
    if (!cell) {
      cell = { key, name: cells.size, tokens: [], low: [9, 9, 9], high: [-9, -9, -9] };
      cells.set(key, cell);
    }
    cell.tokens.push(i);
    for (let c = 0; c < 3; c++) {
      cell.low[c] = Math.min(cell.low[c], x[3 * i + c]);
      cell.high[c] = Math.max(cell.high[c], x[3 * i + c]);
    }
  }
  const parent = Int32Array.from({ length: cells.size }, (_, k) => k);
  const root = (k) => {
    while (parent[k] !== k) k = parent[k] = parent[parent[k]];
    return k;
  };
  for (const cell of cells.values()) {
    for (const other of neighbours(cells, cell, row)) {
      const [p, q] = [root(cell.name), root(other.name)];
      if (p !== q && linked(x, cell, other, chord * chord)) parent[p] = q;
    }
  }
  const part = new Int32Array(x.length / 3);
  for (const cell of cells.values()) for (const i of cell.tokens) part[i] = root(cell.name);
  return part;
}

/** The cells after this one that may hold tokens within a chord, which is less than two sides. */
function* neighbours(cells, cell, row) {
  for (let a = 0; a <= 2; a++) {
    for (let b = -2; b <= 2; b++) {
      for (let c = -2; c <= 2; c++) {
        const step = (a * row + b) * row + c;
        const other = step > 0 && cells.get(cell.key + step);
        if (other) yield other;
      }
    }
  }
}

function linked(x, one, other, limit) {
  let least = 0;
  let most = 0;
  for (let c = 0; c < 3; c++) {
    least += Math.max(one.low[c] - other.high[c], other.low[c] - one.high[c], 0) ** 2;
    most += Math.max(one.high[c] - other.low[c], other.high[c] - one.low[c]) ** 2;
  }
  if (least > limit || most <= limit) return most <= limit;
  for (const i of one.tokens) {
    for (const j of other.tokens) {
      const [a, b, c] = [x[3 * i] - x[3 * j], x[3 * i + 1] - x[3 * j + 1], x[3 * i + 2] - x[3 * j + 2]];
      if (a * a + b * b + c * c <= limit) return true;
    }
  }
  return false;
}

function described(x, m, d, scale, part) {
  const total = new Float64Array(part.reduce((most, name) => Math.max(most, name), 0) + 1);
  const held = new Uint8Array(total.length);
  part.forEach((name, i) => {
    total[name] += m[i];
    held[name] = 1;
  });
  const names = [...total.keys()].filter((name) => held[name]).sort((a, b) => total[b] - total[a] || a - b);
  const rank = new Int32Array(total.length);
  names.forEach((name, k) => (rank[name] = k));
  const labels = part.map((name) => rank[name]);
  const centres = new Float64Array(names.length * d);
  labels.forEach((k, i) => {
    for (let c = 0; c < d; c++) centres[k * d + c] += m[i] * x[i * d + c];
  });
  for (let k = 0; k < names.length; k++) {
    const norm = Math.hypot(...centres.subarray(k * d, k * d + d)) || 1;
    for (let c = 0; c < d; c++) centres[k * d + c] /= norm;
  }
  const radii = new Float64Array(names.length);
  labels.forEach((k, i) => {
    radii[k] = Math.max(radii[k], angleBetween(x, i, centres, k, d));
  });
  const masses = Float64Array.from(names, (name) => total[name]);
  return { labels, count: names.length, masses, centres, radii, condensed: radii.every((one) => one <= scale) };
}

/** The angle between unit vector i of x and unit vector k of y. */
export function angleBetween(x, i, y, k, d) {
  let apart = 0;
  for (let c = 0; c < d; c++) apart += (x[i * d + c] - y[k * d + c]) ** 2;
  return 2 * Math.asin(Math.min(Math.sqrt(apart) / 2, 1));
}
