/** Keys that work anywhere on the page, unless a control has the focus that uses them itself. */

const KEYS = { " ": "play", ".": "step", ",": "back", r: "reset" };
/** What always uses keys, and what uses them where the keyboard came to it: after a click the keys stay those of the page. */
const FIELDS = "input:not([type=range]), textarea, dialog[open]";
const CONTROLS = "select, button, summary";

/** @param {Record<string, () => void>} actions @param {{ next: () => boolean }} guide */
export function keys(actions, guide) {
  let tabbed = false;
  addEventListener("pointerdown", () => (tabbed = false), true);
  addEventListener("keydown", (event) => {
    if (event.key === "Tab") tabbed = true;
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    const target = /** @type {HTMLSelectElement} */ (event.target);
    const touring = event.key === " " && target.id === "tours" && target.value;
    if (target.closest(FIELDS) || (tabbed && !touring && target.closest(CONTROLS))) return;
    event.preventDefault();
    if (target.closest("button")) target.blur();
    if (event.key === " " && guide.next()) return;
    actions[KEYS[event.key]]();
  });
}
