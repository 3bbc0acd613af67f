/** Axes of panels: scales, ticks and the frame. */

/** Where panels begin on the axis of log time. */
const FIRST = 0.05;
/** Ticks of the axis of time, about. */
const TICKS = 7;
const EDGE = { left: 54, right: 10, top: 8, bottom: 20 };

/** The inner box of a panel of this size. */
export function inner(width, height) {
  const { left, right, top, bottom } = EDGE;
  return { left, top, right: width - right, bottom: height - bottom };
}

/** Where the axis ends: 10, 30, 100, ..., so that it moves seldom and leaves room for a prediction. */
export function horizon(last) {
  let end = 10;
  for (let k = 0; end < 1.05 * last; k++) end *= k % 2 ? 10 / 3 : 3;
  return end;
}

/** Time to pixels, logarithmic. */
export function timeScale(box, last) {
  const end = Math.log(horizon(last) / FIRST);
  return (t) => box.left + ((box.right - box.left) * Math.log(Math.max(t, FIRST) / FIRST)) / end;
}

/** Frames that the axis has room for: of those up to its beginning, the last one. */
export function onAxis(frames) {
  return frames.slice(Math.max(0, frames.findLastIndex(({ t }) => t <= FIRST)));
}

/** The time at a share of the axis. */
export function timeAt(share, last) {
  return FIRST * (horizon(last) / FIRST) ** Math.min(1, Math.max(0, share));
}

export function linear(from, to, low, high) {
  return (value) => from + ((to - from) * (value - low)) / (high - low || 1);
}

/** Round numbers between low and high, about `count` of them. */
export function ticks(low, high, count = 4) {
  const rough = (high - low) / count || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((one) => one * unit >= 0.7 * rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

/** A number in few letters, with a true minus sign. */
export function shown(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const isFar = size !== 0 && (size < 1e-3 || size >= 1e5);
  const text = isFar ? power(value, 0, Math.max(digits - 2, 0)) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

/** e^logarithm in few letters, also where no number of JavaScript is as large. */
export function shownExp(logarithm) {
  const tens = Math.floor(logarithm / Math.LN10);
  return power(Math.exp(logarithm - tens * Math.LN10), tens, 1);
}

/** value 10^tens with a raised exponent. */
function power(value, tens, digits) {
  const [head, exponent] = value.toExponential(digits).split("e");
  const raised = [...String(Number(exponent) + tens)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
  return Number(head) === 1 ? `10${raised}` : `${Number(head)}·10${raised}`;
}

/** A line across a box, and one from its top to its bottom. */
export function across(pen, box, y, look) {
  pen.path([[box.left, y], [box.right, y]], look);
}
export function upright(pen, box, x, look) {
  pen.path([[x, box.top], [x, box.bottom]], look);
}

/** The horizontal axis of log time, with the cursor. */
export function timeAxis(pen, box, last, colours, cursor) {
  const x = timeScale(box, last);
  across(pen, box, box.bottom, { stroke: colours.grey, width: 0.8 });
  const decades = Math.ceil(Math.log10(horizon(last) / 0.1) / TICKS);
  for (let t = 0.1; t <= horizon(last) * 1.0001; t *= 10 ** decades) {
    pen.path(
      [
        [x(t), box.bottom],
        [x(t), box.bottom + 3],
      ],
      { stroke: colours.grey, width: 0.8 },
    );
    if (x(t) < box.right - 26)
      pen.text(x(t), box.bottom + 14, shown(t), { fill: colours.grey, size: 10, align: "center" });
  }
  pen.text(box.right, box.bottom + 14, "t", { fill: colours.grey, size: 11, align: "right", weight: "italic" });
  if (cursor !== null) upright(pen, box, x(cursor), { stroke: colours.ink, width: 0.8, alpha: 0.7 });
  return x;
}

/** The vertical axis with round numbers and faint lines across. */
export function valueAxis(pen, box, low, high, colours, count = 4) {
  const y = linear(box.bottom, box.top, low, high);
  const marks = ticks(low, high, count);
  const most = Math.max(...marks.map(Math.abs));
  const digits = Math.ceil(Math.log10(most / (marks[1] - marks[0]))) + 1; // so that no two marks read the same
  for (const value of marks) {
    across(pen, box, y(value), { stroke: colours.faint, width: 0.7 });
    const words = shown(value, digits > 3 ? digits : 3);
    pen.text(box.left - 5, y(value) + 3.5, words, { fill: colours.grey, size: words.length > 8 ? 8 : 10, align: "right" });
  }
  return y;
}
