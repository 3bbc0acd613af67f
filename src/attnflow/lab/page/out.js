/** Buttons of what leaves the page: pictures, a film, series, lines of Python, a run folder. */

import { isServed, writeFolder } from "./remote.js";
import { Film, offer, toCsv, toPng, toPython, toSvg } from "./save.js";
import { asFirst, specOf, written } from "./state.js";

/** @type {(id: string) => any} */
const $ = (id) => document.getElementById(id);
const NOTHING = "This is a finished run, a sweep or a recording: there is nothing to write.";
const CHANGED = "β was changed on the way, which no specification says.";
const ALONE = "This page has no server, so it writes no run folder itself; this command does:";
const SERVED = "Python carries it out and writes it below the folder that `attnflow lab FOLDER` was given. The same from a terminal:";

/**
 * @param {() => { view: object, scenes: object[], state: object, index: number }} seen what is shown now
 * @param {() => void} repaint
 */
export function saving(seen, repaint) {
  let film = null; // while one is taken
  const time = ({ view, index }) => view.runs[0].history.frames[index].t;

  /** What a run folder is made of: an address of the page, or a specification. */
  const asked = () => {
    const now = seen();
    const second = now.view.runs[now.view.chosen].second;
    const { state } = now;
    if (state.source === "recording" || (state.source === "python" && (state.run || (second && state.run2)))) return null;
    const one = second ? asFirst(state) : state;
    const spec = state.source === "python" ? JSON.stringify(specOf(state, second)) : "";
    return { address: written({ ...one, spec, t: time(now), tour: "" }) };
  };

  /** An action on what is shown, if there is anything. */
  const some = (action) => () => {
    const now = seen();
    if (now.view.runs.length) action(now);
  };

  const python = (now) => {
    $("lines").textContent = toPython(now.state, time(now), now.view.runs[now.view.chosen].second);
    const changed = now.state[now.view.runs[now.view.chosen].second ? "then2" : "then"];
    const what = changed ? null : asked();
    $("folder-words").textContent = changed ? CHANGED : !what ? NOTHING : isServed() ? SERVED : ALONE;
    $("command").textContent = what ? `attnflow run --from-url '${location.origin}/${what.address}'` : "";
    $("command").hidden = !what;
    $("folder-form").hidden = !what || !isServed();
    $("folder-said").textContent = "";
    $("dialog").showModal();
  };

  const write = () => {
    $("folder-write").disabled = true;
    $("folder-said").textContent = "asking …";
    writeFolder($("folder-name").value.trim(), asked(), (words) => {
      $("folder-said").textContent = words;
      $("folder-write").disabled = words.endsWith("…");
    });
  };

  return {
    /** Take the picture into the film, if there is one. */
    film: (view, scenes) => film?.add(view, scenes),
    actions: {
      png: some(async ({ view, scenes }) => offer("attnflow-lab.png", await toPng(view, scenes))),
      svg: some(({ view, scenes }) => offer("attnflow-lab.svg", toSvg(view, scenes))),
      webm: async () => {
        const taken = film;
        film = taken ? null : new Film();
        $("webm").textContent = film ? "Stop the film" : "WebM";
        repaint();
        if (taken?.recorder) offer("attnflow-lab.webm", await taken.end());
      },
      csv: () => offer("attnflow-lab.csv", toCsv(seen().view.runs)),
      python: some(python),
      copy: () => {
        getSelection().selectAllChildren($("lines"));
        navigator.clipboard?.writeText($("lines").textContent);
      },
      "folder-write": write,
      close: () => $("dialog").close(),
    },
  };
}
