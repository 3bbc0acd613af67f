/**
 * Where frames come from. A source has `start(setting)`, `set(change, t)`, `credit(t)` and `close()`; for each credit
 * it calls back with one frame at the time t. This one is the engine in a worker.
 */

/**
 * @param {(frame: import("./engine.js").Frame) => void} onFrame
 * @param {(message: string) => void} onError
 */
export function workerSource(onFrame, onError) {
  const worker = newWorker();
  worker.onmessage = ({ data }) => (data.frame ? onFrame(data.frame) : onError(data.error));
  worker.onerror = (event) => onError(event.message);
  return {
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
  return new Worker(URL.createObjectURL(new Blob([inlined.textContent], { type: "text/javascript" })));
}
