/** Guided tours: steps with a state of the page and a text whose phrases light up what they name. */

/**
 * A text has phrases in brackets with what they name: [phrase|selector].
 * @type {Record<string, { title: string, steps: { hash: string, text: string }[] }>}
 */
export const TOURS = {
  measures: {
    title: "A flow of measures",
    steps: [
      {
        hash: "n=300&beta=2&seed=1&speed=0.25",
        text: "Each [dot|#scene-A] is a token, and [time|#transport] is depth. A token moves towards the average of the tokens that it attends to, and stays on the sphere.",
      },
      {
        hash: "n=300&beta=2&seed=1&zipf=1&speed=0.25",
        text: "[Larger dots|#scene-A] have more mass, and draw the others more. The measure is all that counts: two tokens at one point do what one token with both masses does.",
      },
      {
        hash: "n=300&beta=2&seed=1&speed=0.5",
        text: "At a fixed β the [energy|#panel-energy] never falls: attention with V = I climbs it, whatever the start. It is 0 where all tokens have met, and nowhere larger.",
      },
      {
        hash: "n=300&beta=2&seed=1&t=30",
        text: "At a small β all tokens soon meet: [one cluster|#panel-counts], and every [overlap|#panel-overlaps] becomes 1. Drag [β|#beta] to 30, press [Reset|#reset], and see how long this takes now.",
      },
    ],
  },
  condensation: {
    title: "Condensation and the fastest mode",
    steps: [
      {
        hash: "space=circle&n=4000&beta=40&seed=2&t=0.02",
        text: "4,000 independent tokens on the circle look uniform: their [overlaps|#panel-overlaps] follow the dashed curve. What differs from uniform is small in every [degree|#panel-modes], about n^(−1/2).",
      },
      {
        hash: "space=circle&n=4000&beta=40&seed=2&speed=0.5",
        text: "The uniform measure is unstable. Each [degree|#panel-modes] grows at a rate of its own; marks in violet are linear theory, which holds while sizes are small.",
      },
      {
        hash: "space=circle&n=4000&beta=40&seed=2",
        text: "The degree in [bold violet|#panel-modes] grows fastest. Waves of about this degree are what the [tokens|#scene-A] condense into; the start decides which.",
      },
      {
        hash: "space=circle&n=4000&beta=160&seed=2",
        text: "Four times β, about twice as many [clusters|#panel-counts]: independent tokens have about √(3β/2) modes, the dashed line.",
      },
    ],
  },
  staircase: {
    title: "Metastability and the staircase",
    steps: [
      {
        hash: "source=recording",
        text: "32 tokens at β = 25, followed by the library to t = 4·10²⁰. They condense within t ≈ 10, and then [linger|#scene-A]: watch the [clock|#clock].",
      },
      {
        hash: "source=recording&t=1e21",
        text: "The [energy|#panel-energy] is a staircase: on each shaded plateau nothing seems to happen. Press on a plateau to go there.",
      },
      {
        hash: "source=recording&t=1000",
        text: "The closest pair [merges|#panel-tree] first. Two clusters at an angle a attract each other like e^(−β(1 − cos a)), so that wide gaps last long.",
      },
      {
        hash: "source=recording&t=1e12",
        text: "In violet: when the next pair will merge, and the [energy|#panel-energy] after that. Times are on a logarithmic axis: each step takes far longer than all before it. Go on with [the button ›|#step] and compare.",
      },
    ],
  },
  causal: {
    title: "Causal attention and the middle",
    steps: [
      {
        hash: "n=150&beta=4&mask=causal&seed=3&t=0.02",
        text: "Under a causal mask a token attends to earlier ones and to itself: [attention|#panel-attention] is a triangle.",
      },
      {
        hash: "n=150&beta=4&mask=causal&seed=3&speed=0.5",
        text: "The first token sees itself alone and stands still; the [others|#scene-A] follow what came before them.",
      },
      {
        hash: "n=150&beta=4&mask=causal&seed=3&compare=on&mask2=all&beta2=4&speed=0.5",
        text: "[A|#scene-A] is causal, [B|#scene-B] is not, from the same start. In A all tokens end at the first one; in B they meet somewhere between.",
      },
      {
        hash: "n=150&beta=4&mask=causal&seed=3&t=2",
        text: "In [attention|#panel-attention] every row sees the first column, and one row alone the last. What the last token keeps of another is summed over all paths through those between: most of the earliest. With an ALiBi slope it keeps the latest ones too, and least of a middle: `attnflow predict middle` says where it lies.",
      },
    ],
  },
  values: {
    title: "Heads and V",
    steps: [
      {
        hash: "n=200&beta=4&seed=4&compare=on&beta2=4&value2=-I&speed=0.5",
        text: "A head multiplies what it attends to by V. With V = I tokens [attract|#scene-A], with V = −I they [repel|#scene-B]: there every degree decays, and the uniform measure is stable.",
      },
      {
        hash: "n=200&beta=4&seed=4&value=1,0,0,0,1,0,0,0,-1&speed=0.5",
        text: "[V|#value] = diag(1, 1, −1) repels along the axis of the poles: [tokens|#scene-A] gather near the equator.",
      },
      {
        hash: "n=200&beta=4&seed=4&value=1,-1,0,1,1,0,0,0,1&speed=0.5",
        text: "Heads with the same attention add up. One with V = I attracts, one with a quarter turn about the axis as V turns: under their [sum|#value] tokens [gather|#scene-A] and go round for ever. There is no [energy|#panel-energy] that must rise.",
      },
      {
        hash: "n=200&beta=4&seed=4&noise=0.05&speed=0.5",
        text: "With noise degree k decays at the rate κk(k + 1) besides: [degrees|#panel-modes] grow only where attention is stronger. Heads with different Q and K are in the engine in [Python|#source].",
      },
    ],
  },
};

/** The parts of a text: plain ones, and phrases with what they name. */
export function parts(text) {
  return text.split(/(\[[^\]|]+\|[^\]]+\])/).filter(Boolean).map((one) => {
    const found = /^\[([^\]|]+)\|([^\]]+)\]$/.exec(one);
    return found ? { words: found[1], names: found[2] } : { words: one, names: null };
  });
}

/**
 * The box of the tours. `onVisit(hash, tour)` brings the page to a step; `tour` is "name.step" for the address, empty
 * when the reader leaves.
 */
export function tours(onVisit) {
  const box = document.getElementById("tour");
  const choice = /** @type {HTMLSelectElement} */ (document.getElementById("tours"));
  const reached = {}; // the step of each tour at which the reader left
  let name = "";
  for (const [key, { title }] of Object.entries(TOURS)) choice.add(new Option(title, key));
  const light = (selector) => {
    for (const one of document.querySelectorAll(".lit")) one.classList.remove("lit");
    const named = selector ? document.querySelector(selector) : null;
    named?.classList.add("lit");
    return named;
  };
  const step = () => reached[name] ?? 0;
  const draw = () => {
    box.hidden = !name;
    choice.value = name;
    light("");
    if (!name) return;
    const { title, steps } = TOURS[name];
    const text = document.createElement("p");
    for (const { words, names } of parts(steps[step()].text)) {
      if (!names) text.append(words);
      else {
        const phrase = Object.assign(document.createElement("button"), { type: "button", textContent: words });
        phrase.className = "phrase";
        phrase.onmouseenter = phrase.onfocus = () => light(names);
        phrase.onclick = () => light(names)?.scrollIntoView({ block: "nearest" });
        text.append(phrase);
      }
    }
    document.getElementById("tour-title").textContent = `${title}, ${step() + 1} of ${steps.length}`;
    document.getElementById("tour-text").replaceChildren(text);
    document.getElementById("tour-next").textContent = step() + 1 < steps.length ? "Go on (space)" : "End (space)";
    light(parts(steps[step()].text).find(({ names }) => names).names);
  };
  const visit = () => {
    draw();
    onVisit(TOURS[name].steps[step()].hash, `${name}.${step()}`);
  };
  const leave = () => {
    name = "";
    draw();
    onVisit(null, "");
  };
  const go = (by) => {
    const to = step() + by;
    if (to >= TOURS[name].steps.length) {
      reached[name] = 0;
      return leave();
    }
    reached[name] = Math.max(0, to);
    visit();
  };
  choice.onchange = () => {
    name = choice.value;
    if (name) visit();
    else leave();
  };
  document.getElementById("tour-next").onclick = () => go(1);
  document.getElementById("tour-back").onclick = () => go(-1);
  document.getElementById("tour-leave").onclick = leave;
  return {
    /** Show what an address says, without going anywhere. */
    show(text) {
      const [key, at] = text.split(".");
      name = Object.hasOwn(TOURS, key) ? key : "";
      if (name) reached[name] = Math.min(TOURS[name].steps.length - 1, Math.max(0, Math.floor(Number(at)) || 0));
      draw();
    },
    /** Whether the space bar went on in a tour. */
    next: () => Boolean(name) && (go(1), true),
  };
}
