/**
 * Where frames come from. A source has `start(setting)`, `set(change, t)`, `credit(t)` and `close()`; for each credit
 * it calls back with one frame at the time t. This one is the engine in a worker.
 */

/**
 * @param {{ onFrame: (frame: import("./engine.js").Frame) => void, onError: (message: string) => void,
 *   onBegun?: (facts: object) => void }} hear
 */
export function workerSource({ onFrame, onError, onBegun }) {
  const worker = newWorker();
  worker.onmessage = ({ data }) =>
    data.frame ? onFrame(data.frame) : data.begun ? onBegun(data.begun) : onError(data.error);
  worker.onerror = (event) => onError(event.message);
  return {
    own: false,
    start: (setting) => worker.postMessage({ start: setting }),
    set: (change, t) => worker.postMessage({ set: change, t }),
    credit: (t) => worker.postMessage({ credit: t }),
    close: () => worker.terminate(),
  };
}

/** The exported page carries the text of the worker; the served one has it as a module beside the others. */
function newWorker() {
  const inlined = document.getElementById("worker-text");
  if (!inlined) return new Worker(new URL("worker.js", document.baseURI), { type: "module" });
  const texts = [document.getElementById("shared-text").textContent, inlined.textContent];
  return new Worker(URL.createObjectURL(new Blob(texts, { type: "text/javascript" })));
}
