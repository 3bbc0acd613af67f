/** What leaves the page: PNG, SVG, CSV, and the lines of Python that repeat it. */

import * as charts from "./charts.js";
import { shown } from "./axes.js";
import { CanvasPen, shifted, SvgPen } from "./pen.js";
import { drawSweep } from "./remote.js";
import { drawClusters, drawLabels, drawStage, drawTokens } from "./sphere.js";
import { changesOf, settingOf, specOf } from "./state.js";

/** Name, title and chart of each panel, and whether a frame or the setting has what it shows. @type {[string, string, Function, Function][]} */
export const PANELS = [
  ["sweep", "Sweep", drawSweep, (_, setting) => setting.sweep],
  ["energy", "Energy", charts.drawEnergy, (frame) => frame.energy !== null],
  ["counts", "Clusters", charts.drawCounts, (frame) => frame.counted !== false],
  ["tree", "Merges", charts.drawTree, (frame) => frame.counted !== false],
  ["modes", "Modes by degree", charts.drawModes, (frame) => frame.modes],
  ["overlaps", "Overlaps ⟨xᵢ, xⱼ⟩", charts.drawOverlaps, (frame) => frame.overlaps],
  ["attention", "Attention", charts.drawAttention, (frame) => frame.attention],
];
const SIZE = { scene: 420, width: 330, height: 190 };

/** The whole page as one picture, by any pen; its width and height. */
function draw(pen, view, scenes) {
  const { scene, width, height } = SIZE;
  const total = [scenes.length * scene + 3 * width, Math.max(scene + 60, 2 * (height + 60))];
  pen.rect(0, 0, ...total, { fill: view.colours.paper });
  scenes.forEach((one, k) => {
    const at = shifted(pen, k * scene, 40);
    const { beta, t } = one.frame;
    const parts = [`t = ${shown(t)}`, `n = ${one.setting.n}`, one.setting.remote ? one.setting.name : `seed ${one.setting.seed}`];
    const words = [...(beta === null ? [] : [`β = ${shown(beta)}`]), ...parts].join(", ");
    pen.text(k * scene + 16, 26, words, { fill: view.colours.ink, size: 14 });
    drawStage(at, scene, scene, one);
    drawClusters(at, scene, scene, one);
    drawTokens(at, scene, scene, one);
    drawLabels(at, scene, scene, one);
  });
  const run = view.runs[view.chosen];
  PANELS.filter(([, , , has]) => has(run.history.frames[run.index], run.setting)).forEach(([, title, chart], k) => {
    const [left, top] = [scenes.length * scene + (k % 3) * width, Math.floor(k / 3) * (height + 60) + 30];
    pen.text(left + 40, top - 6, title, { fill: view.colours.ink, size: 13, weight: "600" });
    chart(shifted(pen, left, top), width, height, view);
  });
  return total;
}

export function toSvg(view, scenes) {
  const pen = new SvgPen();
  return pen.toString(...draw(pen, view, scenes));
}

/** @returns {Promise<Blob>} */
export function toPng(view, scenes) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = draw(new SvgPen(), view, scenes).map((one) => 2 * one);
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  draw(new CanvasPen(context), view, scenes);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** A film of the page in WebM, picture by picture as they are painted. */
export class Film {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.parts = [];
    this.recorder = null;
  }

  /** One more picture; the first one begins the film. */
  add(view, scenes) {
    const context = this.canvas.getContext("2d");
    if (!this.recorder) {
      [this.canvas.width, this.canvas.height] = draw(new SvgPen(), view, scenes);
      this.recorder = new MediaRecorder(this.canvas.captureStream(30), { mimeType: "video/webm" });
      this.recorder.ondataavailable = ({ data }) => this.parts.push(data);
      this.recorder.start();
    }
    draw(new CanvasPen(context), view, scenes);
  }

  /** The end of the film. @returns {Promise<Blob>} */
  end() {
    return new Promise((done) => {
      this.recorder.onstop = () => done(new Blob(this.parts, { type: "video/webm" }));
      this.recorder.stop();
    });
  }
}

/** The series of all flows, one row a frame. */
export function toCsv(runs) {
  const rows = ["flow,t,beta,energy,clusters,condensed,order_parameter"];
  runs.forEach((run, k) => {
    for (const { t, beta, energy, count, condensed, order } of run.history.frames) {
      rows.push(["AB"[k], t, beta, energy, count, Number(condensed), order].join(","));
    }
  });
  return `${rows.join("\n")}\n`;
}

/** The lines of Python that repeat a flow up to the time t. */
export function toPython(state, t, second) {
  if (state.source !== "page") return toSpecification(state, second);
  const { given } = settingOf(state, second);
  const { d, n, seed, start, jitter, zipf, beta, model, causal, value, kappa } = settingOf(state, second);
  const until = Number(t.toPrecision(6)) || 10;
  const lines = ["import numpy as np", "import attnflow as af", ""];
  const rest = start === "ring" ? `, jitter=${jitter}` : "";
  lines.push(
    `tokens = af.${start === "ring" ? "tokens.ring" : "uniform"}(af.Sphere(${d}), n=${n}${rest}, seed=${seed})`,
  );
  if (given) {
    const rows = Array.from({ length: n }, (_, i) => `[${[...given.slice(i * d, (i + 1) * d)].map((one) => one.toFixed(6))}]`);
    lines[lines.length - 1] = `tokens = af.tokens.from_array([${rows}], normalise=True)`;
  }
  if (zipf) lines.push(`tokens = af.Tokens(tokens.positions, np.arange(1, ${n + 1}) ** -${zipf.toFixed(2)})`);
  const matrix = value && `np.array([${value.map((one) => one.toFixed(3))}]).reshape(${d}, ${d})`;
  const parts = [
    model === "SA" ? "" : ', normaliser="USA0"',
    causal ? ", mask=af.Causal()" : "",
    matrix ? `, value=${matrix}` : "",
  ].join("");
  const noise = kappa ? `, noise=af.Brownian(kappa=${kappa}, seed=${seed})` : "";
  const changes = changesOf(state[second ? "then2" : "then"]).filter((one) => one.t < until);
  const stages = [{ t: 0, beta }, ...changes].map((one, k, all) => ({
    ...one,
    lasts: (all[k + 1]?.t ?? until) - one.t,
  }));
  for (const { beta: own, lasts } of stages.filter((one) => one.lasts > 0)) {
    lines.push(`field = af.Attention(beta=${own.toFixed(3)}${parts})`);
    lines.push(`flow = af.solve(field, tokens, until=${Number(lasts.toPrecision(6))}${noise})`);
    lines.push("tokens = flow.tokens(-1)");
  }
  const last = stages.at(-1).beta.toFixed(3);
  lines.push(`found = af.observe.clusters(tokens, scale=af.observe.cluster_scale(${last}))`);
  lines.push("print(found.count, found.condensed)");
  lines.push('af.plot(flow).savefig("flow.pdf")');
  return `${lines.filter((line) => line !== "import numpy as np" || matrix || zipf).join("\n")}\n`;
}

/** The lines of Python that carry out the specification of the form, or open the run. */
function toSpecification(state, second) {
  if (state.source === "recording") return "# python -m tests.lab.staircase makes this recording\n";
  const run = state[second ? "run2" : "run"] || state.run;
  const at = state[second ? "at2" : "at"];
  if (run && at) return `import attnflow as af\n\nsweep = af.open_sweep("${run}")\nsweep.dataset.isel(dict(zip([a.dim for a in sweep.plan.axes], [${at}])))\n`;
  if (run) return `from attnflow import runs\n\nflow = runs.open_run("${run}")\n`;
  const rows = Object.entries(specOf(state, second)).map(([key, value]) => `    "${key}": ${literal(value)},`);
  const lines = ["import tomli_w", "from attnflow import runs", "", "table = {", ...rows, "}"];
  if (state[second ? "then2" : "then"]) lines.push("# beta changed on the way: this is the flow without its changes");
  lines.push('run, flow = runs.execute(runs.parse_spec(tomli_w.dumps(table)), "runs/from-the-lab")');
  return `${lines.join("\n")}\n`;
}

/** A value as Python writes it. */
function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value !== null && typeof value === "object")
    return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${literal(one)}`).join(", ")}}`;
  return { true: "True", false: "False", null: "None" }[String(value)] ?? JSON.stringify(value);
}

/** Hand a file to the reader. */
export function offer(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
