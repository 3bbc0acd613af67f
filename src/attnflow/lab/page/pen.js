/** Two pens with the same strokes, for a canvas and for SVG, so that every panel is drawn by one function. */

/**
 * @typedef {{ stroke?: string, width?: number, dash?: number[], fill?: string | CanvasGradient, alpha?: number }} Look
 */

const FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif";

export class CanvasPen {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
  }

  /** A path through points [x, y]; closed if it is filled. @param {number[][]} points @param {Look} look */
  path(points, { stroke, width = 1.5, dash = [], fill, alpha = 1 }) {
    const c = this.context;
    if (points.length < 2) return;
    c.globalAlpha = alpha;
    c.beginPath();
    points.forEach(([x, y], k) => (k ? c.lineTo(x, y) : c.moveTo(x, y)));
    if (fill) {
      c.closePath();
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      Object.assign(c, { strokeStyle: stroke, lineWidth: width, lineJoin: "round", lineCap: "round" });
      c.setLineDash(dash);
      c.stroke();
      c.setLineDash([]);
    }
    c.globalAlpha = 1;
  }

  rect(x, y, w, h, { fill, alpha = 1 }) {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, w, h);
    this.context.globalAlpha = 1;
  }

  /** @param {number} x @param {number} y @param {number} r @param {Look} look */
  dot(x, y, r, { fill, stroke, width = 1, alpha = 1 }) {
    const c = this.context;
    c.globalAlpha = alpha;
    c.beginPath();
    c.arc(x, y, r, 0, 2 * Math.PI);
    if (fill) {
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      Object.assign(c, { strokeStyle: stroke, lineWidth: width });
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  /** A disc that looks round: light at the upper left. @param {string[]} shades the light one, and that of the rim */
  ball(x, y, r, shades) {
    const fill = this.context.createRadialGradient(x - 0.3 * r, y - 0.34 * r, 0, x, y, r);
    shades.forEach((shade, k) => fill.addColorStop(k, shade));
    this.dot(x, y, r, { fill });
  }

  text(x, y, words, { size = 11, fill, align = "left", weight = "normal" }) {
    Object.assign(this.context, { font: `${weight} ${size}px ${FONT}`, fillStyle: fill, textAlign: align });
    this.context.fillText(words, x, y);
  }
}

export class SvgPen {
  constructor() {
    this.parts = [];
  }

  path(points, { stroke, width = 1.5, dash = [], fill, alpha = 1 }) {
    if (points.length < 2) return;
    const at = points.map((point) => point.map(short).join(",")).join(" ");
    const lines = stroke ? `stroke="${stroke}" stroke-width="${width}" stroke-dasharray="${dash.join(" ")}"` : "";
    this.parts.push(
      `<${fill ? "polygon" : "polyline"} points="${at}" fill="${fill ?? "none"}" opacity="${alpha}" ${lines}/>`,
    );
  }

  rect(x, y, w, h, { fill, alpha = 1 }) {
    const [a, b, c, d] = [x, y, w, h].map(short);
    this.parts.push(`<rect x="${a}" y="${b}" width="${c}" height="${d}" fill="${fill}" opacity="${alpha}"/>`);
  }

  /** @param {number} x @param {number} y @param {number} r @param {Look} look */
  dot(x, y, r, { fill, stroke, width = 1, alpha = 1 }) {
    const line = stroke ? `stroke="${stroke}" stroke-width="${width}"` : "";
    const [a, b, c] = [x, y, r].map(short);
    this.parts.push(`<circle cx="${a}" cy="${b}" r="${c}" fill="${fill ?? "none"}" opacity="${alpha}" ${line}/>`);
  }

  ball(x, y, r, shades) {
    const stops = shades.map((shade, k) => `<stop offset="${k}" stop-color="${shade}"/>`).join("");
    this.parts.push(`<radialGradient id="ball" cx="0.35" cy="0.33" r="0.75">${stops}</radialGradient>`);
    this.dot(x, y, r, { fill: "url(#ball)" });
  }

  text(x, y, words, { size = 11, fill, align = "left", weight = "normal" }) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    const look = `font-size="${size}" font-weight="${weight}" fill="${fill}" text-anchor="${anchor}"`;
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" ${look}>${safe}</text>`);
  }

  /** The whole picture. */
  toString(width, height) {
    const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
    const font = FONT.replaceAll("'", "");
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${font}">\n${this.parts.join("\n")}\n</svg>\n`;
  }
}

/** A pen that draws with the corner of a box as its origin. */
export function shifted(pen, left, top) {
  return {
    path: (points, look) =>
      pen.path(
        points.map(([x, y]) => [x + left, y + top]),
        look,
      ),
    rect: (x, y, w, h, look) => pen.rect(x + left, y + top, w, h, look),
    dot: (x, y, r, look) => pen.dot(x + left, y + top, r, look),
    ball: (x, y, r, shades) => pen.ball(x + left, y + top, r, shades),
    text: (x, y, words, letters) => pen.text(x + left, y + top, words, letters),
  };
}

function short(number) {
  return Math.round(number * 100) / 100;
}
