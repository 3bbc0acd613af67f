// The player of an animation: a canvas over the still part of the figure. Everything is measured in units of the
// figure, `size` of them across and down; what moves was computed before, nothing is interpolated.
function attnflowPlayer(root, data) {
  const canvas = root.querySelector("canvas"), slider = root.querySelector("input");
  const button = root.querySelector("button"), ink = canvas.getContext("2d");
  const [width, height] = data.size, last = data.frame.length - 1;
  const views = data.views.map(view => ({
    ...view, points: decode(view.points, Int16Array), radii: decode(view.radii, Uint8Array),
    labels: decode(view.labels, Uint8Array), turn: [1, 0, 0, 0, 1, 0, 0, 0, 1]
  }));
  const curve = data.curve && { ...data.curve, y: decode(data.curve.y, Int16Array) };
  let now = 0, timer = null;

  function decode(text, Kind) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    return new Kind(bytes.buffer);
  }
  function turned(view, x, y, z) {
    const r = view.turn;
    return [r[0] * x + r[1] * y + r[2] * z, r[3] * x + r[4] * y + r[5] * z, r[6] * x + r[7] * y + r[8] * z];
  }
  function place(view, frame, token) {
    const at = (frame * view.count + token) * view.dim, s = view.width / 32767, p = view.points;
    const x = p[at] * s, y = p[at + 1] * s, z = view.dim > 2 ? p[at + 2] * s : 0;
    return view.dim > 2 ? turned(view, x, y, z) : [x, y, 0];
  }
  const across = (view, x) => view.origin[0] + view.scale[0] * x;
  const down = (view, y) => view.origin[1] + view.scale[1] * y;

  function line(points, view) {
    ink.beginPath();
    points.forEach((p, k) => ink[k ? "lineTo" : "moveTo"](across(view, p[0]), down(view, p[1])));
    ink.stroke();
  }
  function between(view, a, b) {  // along a great circle where both ends are on a sphere
    const long = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    if (!view.unit || long < 0.1 || long > 1.99) return [a, b];
    const points = [];
    for (let k = 0; k <= 8; k++) {
      const c = a.map((value, j) => value + (b[j] - value) * k / 8), length = Math.hypot(...c);
      points.push(c.map(value => value / length));
    }
    return points;
  }
  function trails(view) {
    const step = Math.ceil(view.count / 400);
    ink.lineWidth = 1.2;
    for (let k = Math.max(now - data.trail, 0) + 1; k <= now; k++) {
      const old = data.frame[k - 1], fresh = data.frame[k];
      if (old === fresh) continue;
      for (let token = 0; token < view.count; token += step) {
        const a = place(view, old, token), b = place(view, fresh, token);
        const far = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
        if (far < 0.004 * view.width || (view.wraps && far > view.width)) continue;
        ink.strokeStyle = data.colours[view.labels[fresh * view.count + token]];
        ink.globalAlpha = 0.65 * (1 - (now - k) / data.trail) * (view.dim > 2 && view.unit && b[2] < 0 ? 0.3 : 1);
        line(between(view, a, b), view);
      }
    }
    ink.globalAlpha = 1;
  }
  function cloud(view) {
    const frame = data.frame[now], dots = [];
    for (let token = 0; token < view.count; token++) {
      const radius = view.radii[frame * view.count + token] / 10;
      if (radius) dots.push([...place(view, frame, token), radius, view.labels[frame * view.count + token]]);
    }
    const solid = view.unit && view.dim > 2;
    dots.sort((a, b) => (solid ? (a[2] >= 0) - (b[2] >= 0) : 0) || b[3] - a[3]);
    for (const [x, y, z, radius, label] of dots) {
      const behind = solid && z < 0;
      ink.beginPath();
      ink.arc(across(view, x), down(view, y), radius, 0, 2 * Math.PI);
      ink.fillStyle = (behind ? data.pale : data.colours)[label];
      ink.fill();
      if (!behind) { ink.strokeStyle = data.ink; ink.lineWidth = 0.7; ink.stroke(); }
    }
  }
  function cursors() {
    for (const panel of data.panels) {
      const x = panel.x[now], y = panel.y[now];
      ink.strokeStyle = data.ink;
      ink.lineWidth = 1.1;
      ink.beginPath(); ink.moveTo(x, panel.top); ink.lineTo(x, panel.bottom); ink.stroke();
      if (y === null) continue;
      ink.beginPath(); ink.arc(x, y, 4.4, 0, 2 * Math.PI);
      ink.fillStyle = data.dot; ink.fill(); ink.stroke();
    }
  }
  function draw() {
    const sharp = canvas.clientWidth / width * (window.devicePixelRatio || 1) || 1;
    canvas.width = Math.round(width * sharp);
    canvas.height = Math.round(height * sharp);
    ink.setTransform(sharp, 0, 0, sharp, 0, 0);
    ink.clearRect(0, 0, width, height);
    for (const view of views) {
      ink.strokeStyle = data.grey;
      ink.lineWidth = 0.4;
      for (const circle of view.circles) {
        const points = circle.map(p => turned(view, ...p));
        let run = [];
        for (const p of points) {
          if (p[2] > 0) { run.push(p); continue; }
          if (run.length > 1) line(run, view);
          run = [];
        }
        if (run.length > 1) line(run, view);
      }
      trails(view);
      cloud(view);
    }
    if (curve) {
      const n = curve.x.length, start = data.frame[now] * n;
      ink.strokeStyle = curve.colour; ink.lineWidth = 2.2; ink.beginPath();
      for (let k = 0; k < n; k++) ink[k ? "lineTo" : "moveTo"](curve.x[k], curve.y[start + k] / 32);
      ink.stroke();
    }
    cursors();
    ink.fillStyle = data.ink;
    ink.font = "16px system-ui, sans-serif";
    ink.textAlign = "center";
    ink.fillText(data.label[now], ...data.title);
  }
  function go(k) { now = Math.min(Math.max(k, 0), last); slider.value = now; draw(); }
  function pause() { clearTimeout(timer); timer = null; button.textContent = "Play"; }
  function next() {
    if (now >= last) { pause(); return; }
    timer = setTimeout(() => { go(now + 1); next(); }, 1000 * data.seconds[now]);
  }
  function play() {
    if (now >= last) go(0);
    button.textContent = "Pause";
    next();
  }
  let held = null;
  canvas.addEventListener("pointerdown", event => {
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * width, y = (event.clientY - box.top) / box.height * height;
    const view = views.find(v => v.dim > 2 && Math.hypot(x - v.origin[0], y - v.origin[1]) < 1.2 * v.width * v.scale[0]);
    if (view) { held = [view, event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); }
  });
  function named(event) {  // the labels of the tokens under the pointer, as the browser's own hint
    const box = canvas.getBoundingClientRect(), frame = data.frame[now], found = [];
    const x = (event.clientX - box.left) / box.width * width, y = (event.clientY - box.top) / box.height * height;
    for (const view of views) {
      const places = Array.from({ length: view.count }, (_, token) => place(view, frame, token));
      const far = (p, q) => Math.hypot(across(view, p[0]) - q[0], down(view, p[1]) - q[1]);
      places.forEach((p, first) => {
        const radius = view.radii[frame * view.count + first] / 10;
        if (!radius || far(p, [x, y]) > radius + 2) return;
        const at = [across(view, p[0]), down(view, p[1])];
        places.forEach((q, token) => { if (far(q, at) < 0.5) found.push(data.names[token]); });
      });
    }
    const words = [...new Set(found)], more = words.length > 20 ? ` and ${words.length - 20} more` : "";
    canvas.title = words.slice(0, 20).join(", ") + more;
  }
  canvas.addEventListener("pointermove", event => {
    if (!held) { if (data.names) named(event); return; }
    const view = held[0], a = (event.clientX - held[1]) / 120, b = (event.clientY - held[2]) / 120;
    const [ca, sa, cb, sb] = [Math.cos(a), Math.sin(a), Math.cos(b), Math.sin(b)];
    const by = [ca, 0, sa, sb * sa, cb, -sb * ca, -cb * sa, sb, cb * ca], r = view.turn;
    view.turn = by.map((_, k) => [0, 1, 2].reduce((sum, j) => sum + by[3 * Math.floor(k / 3) + j] * r[3 * j + k % 3], 0));
    held = [view, event.clientX, event.clientY];
    draw();
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("dblclick", () => { views.forEach(v => { v.turn = [1, 0, 0, 0, 1, 0, 0, 0, 1]; }); draw(); });
  slider.max = last;
  slider.addEventListener("input", () => { pause(); go(Number(slider.value)); });
  button.addEventListener("click", () => (timer ? pause() : play()));
  window.addEventListener("resize", draw);
  go(0);
}
