/** In the place of `remote.js` in the page that is one file: there is no server. */

import { absent } from "./flow.js";

export function isServed() {
  return false;
}

export function python(state, second, hear) {
  return absent(second, hear);
}

export function leave() {}
export function showBeta() {}
export function writeFolder() {}
export function drawSweep() {}
export function pointAtShare() {}
