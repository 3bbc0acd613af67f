/** Credits of flows whose frames have times of their own: which of them is asked for its next frame. */

/** @typedef {import("./flow.js").Run} Run */

/** Ask a flow for its next frame. @param {Run} run */
export function credit(run) {
  run.owed += 1;
  run.source.credit(0);
}

/** The time of the last frame of a flow, −1 without any. @param {Run} run */
export function latest(run) {
  return run.history.frames.at(-1)?.t ?? -1;
}

/** Flows of which more is wanted: the second one is followed as far as the first one goes. @param {Run[]} runs */
function open(runs) {
  const [first] = runs;
  return runs.filter((run) => !run.ended && !(first.ended && latest(run) >= latest(first)));
}

/** @param {Run[]} runs */
export function areComplete(runs) {
  return open(runs).length === 0;
}

/** The flow that is behind goes on, with at most so many frames under way; both do where they are at one time. */
export function goOn(runs, most) {
  const wanted = open(runs);
  const behind = Math.min(...wanted.map(latest));
  for (const run of wanted) if (run.begun && run.owed < most && latest(run) <= behind) credit(run);
}

/** A second flow that is behind the time at the cursor follows, also while the reader holds. */
export function catchUp(runs, now, most) {
  for (const run of open(runs).filter((one) => one !== runs[0]))
    if (run.begun && run.owed < most && latest(run) < now * (1 - 1e-12)) credit(run);
}
