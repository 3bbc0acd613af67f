/**
 * The engine in Python over a WebSocket of the server that gave the page. One connection serves the forms and one
 * flow. A lost connection is tried again; a flow then begins anew.
 */

import { unpacked, Unpacker } from "./frames.js";

/** Milliseconds between attempts, twice as long each time, and attempts. */
const FIRST_WAIT = 400;
const ATTEMPTS = 8;
/** The server sends clients away with these codes: what they did, or that there are too many. */
const FINAL = [1008, 1009, 1013];

/** The token in the address of the page; empty where no server has an engine for it. */
export function tokenOfPage() {
  return location.protocol.startsWith("http") ? (new URLSearchParams(location.search).get("token") ?? "") : "";
}

/**
 * @param {{ onForms: (forms: object, runs: string[], undrawn: Record<string, string>) => void, onBegun: (facts: object) => void,
 *   onFrame: (frame: import("./engine.js").Frame) => void, onEnded: (words: string) => void,
 *   onChanged: (change: { t: number, beta: number, planned: boolean }) => void,
 *   onError: (words: string) => void, onBack: () => void }} hear
 */
export function connection(hear) {
  /** @type {WebSocket | null} */
  let socket = null;
  let closed = false;
  let attempts = 0;
  let unpacker = null;
  let number = 0; // of the flow that was asked for last
  const waiting = [];

  const open = () => {
    const address = new URL(`socket?token=${encodeURIComponent(tokenOfPage())}`, location.href);
    address.protocol = "ws:";
    address.hash = "";
    socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      const again = attempts > 0;
      attempts = 0;
      if (again) {
        waiting.length = 0;
        hear.onBack();
      }
      socket.send('{"forms": 1}');
      for (const text of waiting.splice(0)) socket.send(text);
    };
    socket.onmessage = ({ data }) => take(data);
    socket.onclose = ({ code, reason }) => lost(code, reason);
  };
  const lost = (code, reason) => {
    socket = null;
    if (closed) return;
    if (FINAL.includes(code)) return hear.onError(`The server closed the connection: ${reason || code}.`);
    attempts += 1;
    if (attempts > ATTEMPTS)
      return hear.onError("The server does not answer this page; open the address that `attnflow lab` prints.");
    hear.onError("The connection was lost; trying again …");
    setTimeout(() => closed || open(), FIRST_WAIT * 2 ** (attempts - 1));
  };
  const take = (data) => {
    if (data instanceof ArrayBuffer) return void (unpacker && hear.onFrame(unpacker.frame(unpacked(data))));
    const said = JSON.parse(data);
    if (said.forms) return hear.onForms(said.forms, said.runs, said.undrawn);
    if (said.stopped || (said.number ?? number) !== number) return; // of a flow that made way for another
    if (said.begun) {
      unpacker = new Unpacker(said.begun);
      hear.onBegun(said.begun);
    } else if (said.ended !== undefined) hear.onEnded(said.ended);
    else if (said.changed) hear.onChanged(said.changed);
    else if (said.error !== undefined) hear.onError(said.error);
  };
  const send = (message) => {
    const text = JSON.stringify(message);
    if (socket?.readyState === WebSocket.OPEN) socket.send(text);
    else if (attempts === 0) waiting.push(text);
  };
  open();
  return {
    own: true,
    start: (asked) => {
      unpacker = null;
      number += 1;
      send({ start: { ...asked, number } });
    },
    set: (change) => send({ set: change }),
    credit: () => send({ credit: 1 }),
    close: () => {
      closed = true;
      socket?.close();
    },
  };
}
