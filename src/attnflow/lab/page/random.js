/**
 * Random numbers as NumPy draws them: `default_rng(seed)` is PCG64 seeded through SeedSequence, and its normal numbers
 * come from the ziggurat of 256 layers. The library draws its starts with these, so the page has the same starts.
 */

const MASK32 = 0xffffffffn;
const MASK64 = (1n << 64n) - 1n;
const MASK128 = (1n << 128n) - 1n;
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;

/** Where the tail of the ziggurat begins, and the area of each of its layers. */
const TAIL = 3.6541528853610088;
const AREA = 0.004928673233974655;
const LAYERS = ziggurat();

/** @param {number} seed a whole number of at least 0, below 2^53 */
export class Random {
  constructor(seed) {
    const words = stretched(seed);
    const pair = (k) => (BigInt(words[k + 1]) << 32n) | BigInt(words[k]);
    this.step = ((((pair(4) << 64n) | pair(6)) << 1n) | 1n) & MASK128;
    this.state = (this.step + ((pair(0) << 64n) | pair(2))) & MASK128;
    this.advance();
  }

  advance() {
    this.state = (this.state * MULTIPLIER + this.step) & MASK128;
  }

  /** 64 random bits. */
  bits() {
    this.advance();
    const folded = ((this.state >> 64n) ^ this.state) & MASK64;
    const turn = this.state >> 122n;
    return ((folded >> turn) | (folded << (64n - turn))) & MASK64;
  }

  /** Uniform in [0, 1). */
  uniform() {
    return Number(this.bits() >> 11n) * 2 ** -53;
  }

  /** A standard normal number. */
  normal() {
    for (;;) {
      const bits = this.bits();
      const layer = Number(bits & 0xffn);
      const size = Number((bits >> 9n) & 0xfffffffffffffn);
      const x = size * LAYERS.width[layer] * (bits & 0x100n ? -1 : 1);
      if (size < LAYERS.inside[layer]) return x;
      if (layer === 0) return this.tail(size);
      const { height } = LAYERS;
      if ((height[layer - 1] - height[layer]) * this.uniform() + height[layer] < Math.exp(-0.5 * x * x)) return x;
    }
  }

  tail(size) {
    for (;;) {
      const over = -Math.log1p(-this.uniform()) / TAIL;
      const fall = -Math.log1p(-this.uniform());
      if (2 * fall > over * over) return Math.floor(size / 256) % 2 ? -(TAIL + over) : TAIL + over;
    }
  }
}

/** SeedSequence(seed).generate_state(8): the bits of the seed spread over eight words of 32 bits. */
function stretched(seed) {
  let left = BigInt(seed);
  const given = [];
  do {
    given.push(Number(left & MASK32));
    left >>= 32n;
  } while (left > 0n);
  let constant = 0x43b0d7e5;
  const hashed = (word) => {
    word ^= constant;
    constant = Math.imul(constant, 0x931e8875);
    word = Math.imul(word, constant);
    return word ^ (word >>> 16);
  };
  const mixed = (a, b) => {
    const word = Math.imul(a, 0xca01f9dd) - Math.imul(b, 0x4973f715);
    return word ^ (word >>> 16);
  };
  const pool = [0, 1, 2, 3].map((k) => hashed(k < given.length ? given[k] : 0));
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from]));
  }
  let factor = 0x8b51f9dd;
  return Array.from({ length: 8 }, (_, k) => {
    let word = pool[k % 4] ^ factor;
    factor = Math.imul(factor, 0x58f38ded);
    word = Math.imul(word, factor);
    return (word ^ (word >>> 16)) >>> 0;
  });
}

/** The layers: `width` per unit of a 52-bit number, `inside` below which no test is needed, `height` of the density. */
function ziggurat() {
  const unit = 2 ** 52;
  const density = (x) => Math.exp(-0.5 * x * x);
  const width = new Float64Array(256);
  const inside = new Float64Array(256);
  const height = new Float64Array(256);
  let x = TAIL;
  width[255] = x / unit;
  height[255] = density(x);
  inside[0] = Math.floor(((x * density(x)) / AREA) * unit);
  width[0] = AREA / density(x) / unit;
  height[0] = 1;
  for (let k = 254; k > 0; k--) {
    const next = Math.sqrt(-2 * Math.log(AREA / x + density(x)));
    inside[k + 1] = Math.floor((next / x) * unit);
    width[k] = next / unit;
    height[k] = density(next);
    x = next;
  }
  return { width, inside, height };
}
