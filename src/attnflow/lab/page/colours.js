/** Colours: Okabe and Ito's for clusters, which the colour-blind can tell apart, and those of the page by theme. */

import { NONE } from "./lineage.js";

export const CLUSTERS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442"];

const LIGHT = {
  paper: "#ffffff",
  ink: "#1a1a1a",
  grey: "#6b7078",
  faint: "#d9dce1",
  wash: "#eef1f5",
  loose: "#8d949e",
  ball: ["#ffffff", "#e3e8ef"],
  first: "#0072B2",
  second: "#D55E00",
  theory: "#7a5195",
};
const DARK = {
  paper: "#14171c",
  ink: "#e8eaed",
  grey: "#9aa1ab",
  faint: "#353b45",
  wash: "#1d222a",
  loose: "#7d8590",
  ball: ["#39414c", "#1a1f26"],
  first: "#56B4E9",
  second: "#E69F00",
  theory: "#c39bd3",
};

/** @returns {typeof LIGHT} */
export function palette(theme) {
  const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  return dark ? DARK : LIGHT;
}

/** The colour of a cluster by its name; grey while it has not condensed. */
export function colourOf(name, colours) {
  return name === NONE ? colours.loose : CLUSTERS[name % CLUSTERS.length];
}
