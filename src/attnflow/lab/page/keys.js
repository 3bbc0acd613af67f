/** Keys that work anywhere on the page, unless a control has the focus that uses them itself. */

const KEYS = { " ": "play", ".": "step", ",": "back", r: "reset" };

/** @param {Record<string, () => void>} actions @param {{ next: () => boolean }} guide */
export function keys(actions, guide) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/** @type {Element} */ (event.target).closest("input, select, textarea, button, summary, dialog[open]")) return;
    if (event.key === " " && guide.next()) return event.preventDefault();
    if (!Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    actions[KEYS[event.key]]();
  });
}
