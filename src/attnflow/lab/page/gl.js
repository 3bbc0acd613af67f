/** The tokens by WebGL2: two shaders and a rotation. Null where WebGL2 is missing. */

import { CLUSTERS } from "./colours.js";
import { camera, dotRadius, placed } from "./sphere.js";

const VERTEX = `#version 300 es
in vec3 position;
in float name;
in float size;
uniform mat3 turn;
uniform vec2 scale;
uniform float radius, side;
uniform vec3 colours[9];
out vec4 colour;
void main() {
  vec3 seen = turn * position;
  float depth = seen.z * side;
  bool far = seen.z < -1e-6;
  int index = name > 254.5 ? 8 : int(mod(name, 7.0));
  colour = vec4(colours[index], far ? 0.28 : 0.92);
  gl_Position = depth < -1e-6 ? vec4(2.0, 2.0, 2.0, 1.0) : vec4(seen.xy * scale, 0.0, 1.0);
  gl_PointSize = 2.0 * radius * size * (far ? 0.8 : 1.0) + 1.0;
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 colour;
uniform float blur;
out vec4 shade;
void main() {
  float away = 2.0 * length(gl_PointCoord - 0.5);
  float cover = colour.a * (1.0 - smoothstep(1.0 - blur, 1.0, away));
  shade = vec4(colour.rgb * cover, cover);
}`;

/** @param {HTMLCanvasElement} canvas */
export function glPainter(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true });
  if (!gl) return null;
  const program = gl.createProgram();
  const attach = (kind, text) => {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  };
  attach(gl.VERTEX_SHADER, VERTEX);
  attach(gl.FRAGMENT_SHADER, FRAGMENT);
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  const at = (name) => gl.getUniformLocation(program, name);
  const send = (name, data, size, type) => {
    const place = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, false, 0, 0);
  };
  const buffers = Object.fromEntries(["position", "name", "size"].map((name) => [name, gl.createBuffer()]));

  return ({ setting, frame, eye, colours, sizes, names }, width, height, density) => {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!frame) return;
    send("position", frame.positions, setting.d, gl.FLOAT);
    send("name", names, 1, gl.UNSIGNED_BYTE);
    send("size", sizes, 1, gl.FLOAT);
    const { r } = placed(width, height, setting.d);
    const radius = dotRadius(setting.n) * density;
    gl.uniformMatrix3fv(at("turn"), true, camera(setting.d, eye));
    gl.uniform2f(at("scale"), (2 * r) / width, (2 * r) / height);
    gl.uniform1f(at("radius"), radius);
    gl.uniform1f(at("blur"), Math.min(1, 1.5 / radius));
    gl.uniform3fv(at("colours"), [...CLUSTERS, CLUSTERS[0], colours.loose].flatMap(rgb));
    for (const side of setting.d === 2 ? [0] : [-1, 1]) {
      gl.uniform1f(at("side"), side);
      gl.drawArrays(gl.POINTS, 0, setting.n);
    }
  };
}

function rgb(hex) {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255);
}
