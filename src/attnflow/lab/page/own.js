/** Starts of one's own: painted points, and the words of a sentence. Both are texts, so that an address holds them. */

import { Random } from "./random.js";

/** Painted points and words, at most. */
const POINTS = 400;
const WORDS = 120;
/** Painted points are angles in this part of a radian. */
const GRAIN = 1000;

/** The words of a sentence. */
export function wordsOf(text) {
  return text.split(/\s+/).filter(Boolean).slice(0, WORDS);
}

/** What a reader is told of a sentence that is not taken whole; empty if it is. */
export function noteOnWords(text) {
  const count = text.split(/\s+/).filter(Boolean).length;
  return count > WORDS ? `The first ${WORDS} of ${count} words are tokens.` : "";
}

/**
 * A point for each word: equal words start at the same point, which the seed and the letters choose.
 * @returns {Float64Array}
 */
export function wordPositions(words, d, seed) {
  const x = new Float64Array(words.length * d);
  words.forEach((word, i) => {
    const random = new Random((lettersToNumber(word) + seed) % 2 ** 32);
    let norm = 0;
    for (let c = 0; c < d; c++) norm += (x[i * d + c] = random.normal()) ** 2;
    for (let c = 0; c < d; c++) x[i * d + c] /= Math.sqrt(norm);
  });
  return x;
}

/** A number below 2^32 for the UTF-8 bytes of a word in small letters: the hash FNV-1a. */
function lettersToNumber(word) {
  let found = 0x811c9dc5;
  for (const letter of unescape(encodeURIComponent(word.toLowerCase())))
    found = Math.imul(found ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  return found;
}

/** What a reader is told of painted points that are not taken as they are; empty if they are. */
export function noteOnPoints(text, d) {
  const [parts, numbers] = [text.split(",").filter(Boolean), anglesOf(text)];
  const count = Math.floor(numbers.length / (d - 1));
  if (!count) return "There is no point in this text: these are the first ones.";
  if (numbers.length < parts.length) return `${parts.length - numbers.length} of ${parts.length} angles cannot be read.`;
  if (count > POINTS) return `The first ${POINTS} of ${count} points are tokens.`;
  return numbers.length > count * (d - 1) ? "The last angle has no partner, and is left out." : "";
}

function anglesOf(text) {
  return text.split(",").filter(Boolean).map(Number).filter(Number.isFinite);
}

/** Unit vectors of a text of angles: one a point on the circle, two (around, up) on the sphere. */
export function pointPositions(text, d) {
  const numbers = anglesOf(text);
  const each = d - 1;
  const count = Math.min(POINTS, Math.floor(numbers.length / each));
  const x = new Float64Array(count * d);
  for (let i = 0; i < count; i++) {
    const [around, up = 0] = numbers.slice(i * each, (i + 1) * each).map((one) => one / GRAIN);
    const point = [Math.cos(up) * Math.cos(around), Math.cos(up) * Math.sin(around), Math.sin(up)];
    for (let c = 0; c < d; c++) x[i * d + c] = point[c];
  }
  return x;
}

/** The text of a point, as `pointPositions` reads it. @param {number[]} point */
export function pointText([a, b, c], d) {
  const angles = [Math.atan2(b, a), Math.asin(Math.max(-1, Math.min(1, c)))].slice(0, d - 1);
  return angles.map((one) => Math.round(GRAIN * one)).join(",");
}
