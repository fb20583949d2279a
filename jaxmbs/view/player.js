// Plays a binary glTF with WebGL 2: nodes, triangles in one colour, linear channels. Vectors are arrays, matrices columns.
"use strict";
const $ = (id) => document.getElementById(id);

// --- the file ------------------------------------------------------------------------------------------------------------
function parse(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const head = new DataView(bytes.buffer);
  const length = head.getUint32(12, true);
  const tree = JSON.parse(new TextDecoder().decode(bytes.subarray(20, 20 + length)));
  const start = 28 + length, sizes = { SCALAR: 1, VEC3: 3, VEC4: 4 };
  const array = (i) => {
    const a = tree.accessors[i], at = start + tree.bufferViews[a.bufferView].byteOffset, n = a.count * sizes[a.type];
    return a.componentType === 5126 ? new Float32Array(bytes.buffer, at, n) : new Uint32Array(bytes.buffer, at, n);
  };
  return { tree, array };
}

// --- matrices (column by column) -------------------------------------------------------------------------------------------
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const n = Math.hypot(...a) || 1; return a.map((x) => x / n); };
function times(a, b) {
  const out = new Float32Array(16);
  for (let c = 0; c < 4; c++) for (let r = 0; r < 4; r++) {
    let sum = 0;
    for (let k = 0; k < 4; k++) sum += a[4 * k + r] * b[4 * c + k];
    out[4 * c + r] = sum;
  }
  return out;
}
function placed(p, q) {
  const [x, y, z, w] = q;
  return new Float32Array([
    1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0,
    2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0,
    2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0,
    p[0], p[1], p[2], 1]);
}
function lookAt(eye, target) {
  const z = unit(minus(eye, target)), x = unit(cross([0, 0, 1], z)), y = cross(z, x);
  return new Float32Array([x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1]);
}
function perspective(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2), d = near - far;
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / d, -1, 0, 0, 2 * far * near / d, 0]);
}

// --- the motion ----------------------------------------------------------------------------------------------------------
const { tree, array } = parse($("glb").textContent);
const about = tree.scenes[0].extras, end = about.end, start = Math.min(0, end);
const nodes = tree.nodes.map((n) => ({ ...n, children: n.children || [], p: n.translation || [0, 0, 0], q: n.rotation || [0, 0, 0, 1] }));
const channels = (tree.animations ? tree.animations[0].channels : []).map((c) => {
  const s = tree.animations[0].samplers[c.sampler];
  return { node: nodes[c.target.node], path: c.target.path, t: array(s.input), x: array(s.output) };
});
const shown = about.samples.map(() => true), kinds = { gap: true, force: false };
const segments = (about.segments || []).map((s) => ({ ...s, start: array(s.start), along: array(s.along) }));
const strongest = Math.max(...segments.filter((s) => s.kind === "force").map((s) => s.along.reduce((m, _, i, x) => i % 3 ? m : Math.max(m, Math.hypot(x[i], x[i + 1], x[i + 2])), 0)), 0);
nodes[0].q = [0, 0, 0, 1];  // z is up here, too

function place(t) {
  for (const c of channels) {
    let low = 0, high = c.t.length - 1;
    while (high - low > 1) { const m = (low + high) >> 1; if (c.t[m] <= t) low = m; else high = m; }
    const share = high > low ? Math.min(Math.max((t - c.t[low]) / (c.t[high] - c.t[low]), 0), 1) : 0;
    const n = c.x.length / c.t.length, out = [];
    for (let k = 0; k < n; k++) out.push((1 - share) * c.x[n * low + k] + share * c.x[n * high + k]);
    if (c.path === "weights") c.node.w = out;
    else if (n === 4) { const size = Math.hypot(...out); c.node.q = out.map((v) => v / size); } else c.node.p = out;
  }
  const visit = (i, above, visible) => {
    const n = nodes[i];
    n.world = times(above, n.matrix || placed(n.p, n.q));
    n.visible = visible && (n.extras === undefined || n.extras.sample === undefined || shown[n.extras.sample]);
    for (const child of n.children) visit(child, n.world, n.visible);
  };
  visit(0, new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]), true);
}

// --- drawing -------------------------------------------------------------------------------------------------------------
const canvas = $("view"), gl = canvas.getContext("webgl2", { antialias: true, preserveDrawingBuffer: true });
if (!gl) $("help").textContent = "this browser has no WebGL 2";
function program(vertex, fragment) {
  const p = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const s = gl.createShader(kind);
    gl.shaderSource(s, "#version 300 es\nprecision highp float;\n" + text);
    gl.compileShader(s);
    gl.attachShader(p, s);
  }
  gl.bindAttribLocation(p, 0, "position");
  gl.bindAttribLocation(p, 1, "normal");
  gl.linkProgram(p);
  return (name) => gl.getUniformLocation(p, name) || (name === "" ? p : null);
}
const solid = program(
  `in vec3 position, normal; uniform mat4 model, camera; out vec3 n;
   void main() { n = transpose(inverse(mat3(model))) * normal; gl_Position = camera * (model * vec4(position, 1.0)); }`,
  `in vec3 n; uniform vec4 color; uniform vec3 eye; out vec4 pixel;
   void main() { vec3 m = normalize(n); if (dot(m, eye) < 0.0) m = -m;
     float light = 0.45 + 0.2 * m.z + 0.45 * max(dot(m, normalize(vec3(0.4, -0.5, 0.8))), 0.0);
     pixel = vec4(pow(color.rgb * light, vec3(1.0 / 2.2)), color.a); }`);
const lines = program(
  `in vec3 position; uniform mat4 camera; void main() { gl_Position = camera * vec4(position, 1.0); }`,
  `uniform vec4 color; out vec4 pixel; void main() { pixel = color; }`);
function buffer(slot, data) {
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
  gl.enableVertexAttribArray(slot);
  gl.vertexAttribPointer(slot, 3, gl.FLOAT, false, 0, 0);
}
// function of the weights that replaces the vertices of the bound array, and their normals, by those of the bent shape
function bending(key, targets) {
  const [positions, normals] = [0, 1].map((slot) => gl.getVertexAttrib(slot, gl.VERTEX_ATTRIB_ARRAY_BUFFER_BINDING));
  const rest = array(key), x = new Float32Array(rest.length), n = new Float32Array(rest.length);
  return (weights) => {
    x.set(rest);
    targets.forEach((moved, k) => { const w = weights[k]; if (w) for (let i = 0; i < x.length; i++) x[i] += w * moved[i]; });
    for (let i = 0; i < x.length; i += 9) {
      const a = x.subarray(i, i + 3), m = cross(minus(x.subarray(i + 3, i + 6), a), minus(x.subarray(i + 6, i + 9), a));
      for (let c = 0; c < 9; c++) n[i + c] = m[c % 3];
    }
    for (const [data, to] of [[x, positions], [n, normals]]) { gl.bindBuffer(gl.ARRAY_BUFFER, to); gl.bufferSubData(gl.ARRAY_BUFFER, 0, data); }
  };
}
const uploaded = new Map();
const meshes = (tree.meshes || []).map((m) => {
  const { attributes, material } = m.primitives[0], key = attributes.POSITION;
  if (!uploaded.has(key)) {
    const vao = gl.createVertexArray();
    gl.bindVertexArray(vao);
    buffer(0, array(attributes.POSITION));
    buffer(1, array(attributes.NORMAL));
    const targets = m.primitives[0].targets;
    uploaded.set(key, { vao, count: tree.accessors[key].count, bends: targets && bending(key, targets.map((x) => array(x.POSITION))) });
  }
  return { ...uploaded.get(key), color: tree.materials[material].pbrMetallicRoughness.baseColorFactor };
});

const camera = { target: [0, 0, 0], distance: 3, turn: -0.9, tilt: 0.35 };
let size = 1, grid = null, time = start, playing = false, speed = 1, last = 0;
function fit() {
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  for (let k = 0; k <= 24; k++) {
    place(start + (end - start) * k / 24);
    for (const n of nodes) if (n.mesh !== undefined && n.visible) {
      const w = n.world, r = 0.5 * Math.hypot(w[0], w[1], w[2], w[4], w[5], w[6], w[8], w[9], w[10]) * reach(n.mesh);
      for (let a = 0; a < 3; a++) { low[a] = Math.min(low[a], w[12 + a] - r); high[a] = Math.max(high[a], w[12 + a] + r); }
    }
  }
  if (low[0] > high[0]) { low.fill(-1); high.fill(1); }
  size = Math.max(...minus(high, low), 1e-6);
  Object.assign(camera, { target: low.map((x, a) => (x + high[a]) / 2), distance: 1.6 * size });
  const step = 10 ** Math.floor(Math.log10(size)) / (size / 10 ** Math.floor(Math.log10(size)) < 3 ? 5 : 1), n = 20, points = [];
  const [x0, y0] = [0, 1].map((a) => Math.round(camera.target[a] / step) * step), z = Math.min(low[2], 0) === 0 ? 0 : low[2];
  // cell by cell: some drivers drop a whole line of which one end is behind the camera
  for (let k = -n; k <= n; k++) for (let i = -n; i < n; i++) {
    const [a, b, c] = [k * step, i * step, (i + 1) * step];
    points.push(x0 + a, y0 + b, z, x0 + a, y0 + c, z, x0 + b, y0 + a, z, x0 + c, y0 + a, z);
  }
  const vao = gl.createVertexArray();
  gl.bindVertexArray(vao);
  buffer(0, new Float32Array(points));
  grid = { vao, count: points.length / 3 };
}
// where a segment is at a time: [start, along]
function segmentAt(s) {
  const t = about.plots.times[about.samples[s.sample]];
  let low = 0, high = t.length - 1;
  while (high - low > 1) { const m = (low + high) >> 1; if (t[m] <= time) low = m; else high = m; }
  const share = high > low ? Math.min(Math.max((time - t[low]) / (t[high] - t[low]), 0), 1) : 0;
  const at = (x, i) => [0, 1, 2].map((c) => x[3 * i + c]), none = (i) => at(s.along, i).every((x) => x === 0);
  if (none(low) || none(high)) { const i = share < 0.5 ? low : high; return [at(s.start, i), at(s.along, i)]; }
  const mixed = (x) => [0, 1, 2].map((c) => (1 - share) * x[3 * low + c] + share * x[3 * high + c]);
  return [mixed(s.start), mixed(s.along)];
}
let segmentArray = null, segmentBuffer = null;
function drawSegments(view, away) {
  const seen = segments.filter((s) => kinds[s.kind] && shown[s.sample]);
  if (!seen.length) return;
  if (!segmentArray) {
    segmentArray = gl.createVertexArray();
    gl.bindVertexArray(segmentArray);
    segmentBuffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, segmentBuffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
  }
  gl.useProgram(lines(""));
  gl.uniformMatrix4fv(lines("camera"), false, view);
  gl.bindVertexArray(segmentArray);
  gl.bindBuffer(gl.ARRAY_BUFFER, segmentBuffer);
  gl.disable(gl.DEPTH_TEST);  // seen through the bodies
  for (const kind of ["gap", "force"]) {
    const points = [];
    for (const s of seen.filter((x) => x.kind === kind)) {
      const [a, along] = segmentAt(s), d = kind === "force" ? along.map((x) => 0.25 * camera.distance * x / strongest) : along;
      const length = Math.hypot(...d);
      if (!length) continue;
      // bands of triangles, because lines are one pixel wide: a shaft, then the head of an arrow
      const u = unit(d), side = unit(cross(u, away)), w = 0.0022 * camera.distance, head = kind === "force" ? Math.min(6 * w, length) : 0;
      const p = (f, g) => a.map((x, i) => x + f * u[i] + g * side[i]), body = length - head;
      points.push(...p(0, -w), ...p(body, -w), ...p(body, w), ...p(0, -w), ...p(body, w), ...p(0, w));
      if (head) points.push(...p(body, -3 * w), ...p(length, 0), ...p(body, 3 * w));
    }
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(points), gl.DYNAMIC_DRAW);
    gl.uniform4f(lines("color"), ...css(kind === "gap" ? "--mark" : "--force"), 1);
    gl.drawArrays(gl.TRIANGLES, 0, points.length / 3);
  }
  gl.enable(gl.DEPTH_TEST);
}
function reach(mesh) {
  const a = tree.accessors[tree.meshes[mesh].primitives[0].attributes.POSITION];
  return 2 * Math.max(...a.min.map(Math.abs), ...a.max.map(Math.abs));
}
function css(name) {
  const v = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((k) => parseInt(v.slice(k, k + 2), 16) / 255);
}
function render() {
  const ratio = window.devicePixelRatio || 1, w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  place(time);
  const target = followed ? minus(camera.target, followed.from.map((x, a) => x - followed.node.world[12 + a])) : camera.target;
  const c = Math.cos(camera.tilt), away = [c * Math.cos(camera.turn), c * Math.sin(camera.turn), Math.sin(camera.tilt)];
  const eye = target.map((x, a) => x + camera.distance * away[a]);
  const view = times(perspective(0.7, w / Math.max(h, 1), camera.distance / 200, camera.distance * 20 + 40 * size), lookAt(eye, target));
  gl.viewport(0, 0, w, h);
  gl.clearColor(...css("--back"), 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.enable(gl.DEPTH_TEST);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  gl.useProgram(lines(""));
  gl.uniformMatrix4fv(lines("camera"), false, view);
  gl.uniform4f(lines("color"), ...css("--line"), 1);
  gl.bindVertexArray(grid.vao);
  gl.drawArrays(gl.LINES, 0, grid.count);
  gl.useProgram(solid(""));
  gl.uniformMatrix4fv(solid("camera"), false, view);
  gl.uniform3f(solid("eye"), ...away);
  for (const clear of [false, true]) for (const n of nodes) {
    if (n.mesh === undefined || !n.visible) continue;
    const m = meshes[n.mesh];
    if ((m.color[3] < 1) !== clear) continue;
    gl.uniformMatrix4fv(solid("model"), false, n.world);
    gl.uniform4fv(solid("color"), m.color);
    gl.bindVertexArray(m.vao);
    if (m.bends && n.w) m.bends(n.w);
    gl.drawArrays(gl.TRIANGLES, 0, m.count);
  }
  drawSegments(view, away);
  $("time").textContent = time.toFixed(end > 100 ? 1 : 3) + " s";
  $("scrub").value = end > start ? (time - start) / (end - start) : 0;
  for (const p of plots) p.draw();
}

// --- controls ------------------------------------------------------------------------------------------------------------
const colors = ["--blue", "#e45756", "#f2b134", "#54a24b", "#b279a2", "#72b7b2"];
const ink = (k) => colors[k % 6].startsWith("#") ? colors[k % 6] : getComputedStyle(document.documentElement).getPropertyValue(colors[k % 6]).trim();
function go(t) { time = Math.min(Math.max(t, start), end); render(); }
function play(on) {
  playing = on;
  $("play").querySelector("path").setAttribute("d", on ? "M3 1.5h4v13h-4zM9 1.5h4v13h-4z" : "M3 1.5v13l11-6.5z");
  if (on) { if (time >= end) time = start; last = performance.now(); requestAnimationFrame(tick); }
}
function tick(now) {
  if (!playing) return;
  time += (now - last) / 1000 * speed;
  last = now;
  if (time > end) time = start;
  render();
  requestAnimationFrame(tick);
}
const natural = end > 60 ? 10 : 1;
for (const s of [0.1, 0.25, 0.5, 1, 2, 5, 10, 100]) $("speed").add(new Option(s + "\u00d7", s, s === natural, s === natural));
speed = natural;
$("speed").onchange = () => { speed = Number($("speed").value); };
$("play").onclick = () => play(!playing);
$("scrub").oninput = () => { play(false); go(start + (end - start) * Number($("scrub").value)); };
$("fit").onclick = () => { fit(); render(); };
let followed = null;
$("follow").add(new Option("camera stands", ""));
nodes.forEach((n, i) => { if (nodes.some((r) => r.extras && r.extras.sample === 0 && r.children.includes(i)) && n.mesh === undefined) $("follow").add(new Option("follows " + n.name, i)); });
$("follow").onchange = () => {
  const node = nodes[$("follow").value];
  followed = $("follow").value === "" ? null : { node, from: [...node.world.slice(12, 15)] };
  if (followed) camera.target = followed.from.slice();
  render();
};
const marks = [];
for (const e of about.events) {
  const mark = document.createElement("span");
  mark.textContent = e.name;
  mark.title = e.name + " at " + e.time.toPrecision(6) + " s" + (about.samples.length > 1 ? ", " + e.sample : "");
  mark.onclick = () => { play(false); go(e.time); };
  const line = document.createElement("i");
  $("events").append(line, mark);
  marks.push({ mark, line, share: end > start ? (e.time - start) / (end - start) : 0 });
}
// names side by side where there is room, else one above the other; none beyond the ends of the track
function spread() {
  const width = $("events").clientWidth, ends = [], high = 14;
  for (const m of marks) {
    const own = m.mark.offsetWidth, left = Math.max(0, Math.min(m.share * width - own / 2, width - own));
    let lane = ends.findIndex((x) => x + 6 <= left);
    if (lane < 0) lane = ends.length;
    ends[lane] = left + own;
    Object.assign(m, { lane, left });
  }
  for (const m of marks) {
    m.mark.style.left = m.left + "px";
    m.mark.style.top = m.lane * high + "px";
    Object.assign(m.line.style, { left: 100 * m.share + "%", top: (m.lane + 1) * high + "px", height: (ends.length - m.lane - 1) * high + 12 + "px" });
  }
  $("track").style.paddingTop = Math.max(ends.length, 1) * high + 2 + "px";
}
marks.sort((a, b) => a.share - b.share);
if (about.samples.length > 1) about.samples.forEach((name, k) => {
  const label = document.createElement("label"), box = document.createElement("input"), dot = document.createElement("i");
  Object.assign(box, { type: "checkbox", checked: true, onchange: () => { shown[k] = box.checked; render(); } });
  dot.style.background = ink(k);
  label.append(box, dot, name);
  $("legend").append(label);
});
for (const kind of ["gap", "force"]) if (segments.some((s) => s.kind === kind)) {
  const label = document.createElement("label"), box = document.createElement("input"), dot = document.createElement("i");
  Object.assign(box, { type: "checkbox", checked: kinds[kind], onchange: () => { kinds[kind] = box.checked; render(); } });
  dot.style.background = kind === "gap" ? "var(--mark)" : "var(--force)";
  label.title = segments.filter((s) => s.kind === kind).map((s) => s.label).filter((x, i, all) => all.indexOf(x) === i).join("\n");
  label.append(box, dot, kind === "gap" ? "gaps" : "forces");
  $("legend").append(label);
}
const plots = about.plots.series.map((s) => {
  const figure = document.createElement("figure"), caption = document.createElement("figcaption"), value = document.createElement("span");
  const area = document.createElement("canvas");
  if (s.limits.length) {
    const limit = document.createElement("i");
    limit.textContent = "limit" + (s.limits.length > 1 ? "s " : " ") + s.limits.map((v) => Number(v.toPrecision(6))).join(", ");
    caption.append(s.label, limit, value);
  } else caption.append(s.label, value);
  figure.append(caption, area);
  $("plots").append(figure);
  const all = [...Object.values(s.lines).flat(), ...s.limits].filter((v) => v !== null);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  area.onpointerdown = area.onpointermove = (e) => { if (e.buttons) { play(false); go(start + (end - start) * e.offsetX / area.clientWidth); } };
  return { draw() {
    const ratio = window.devicePixelRatio || 1, w = area.width = area.clientWidth * ratio, h = area.height = area.clientHeight * ratio;
    const g = area.getContext("2d"), x = (t) => (end > start ? (t - start) / (end - start) : 0) * w, y = (v) => h - 4 - (v - low) / (high - low) * (h - 8);
    g.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--line");
    g.strokeRect(0.5, 0.5, w - 1, h - 1);
    if (low < 0 && high > 0) { g.beginPath(); g.moveTo(0, y(0)); g.lineTo(w, y(0)); g.stroke(); }
    g.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark");
    g.lineWidth = ratio;
    g.setLineDash([5 * ratio, 4 * ratio]);
    for (const v of s.limits) { g.beginPath(); g.moveTo(0, y(v)); g.lineTo(w, y(v)); g.stroke(); }
    g.setLineDash([]);
    about.samples.forEach((name, k) => {
      if (!s.lines[name] || !shown[k]) return;
      const t = about.plots.times[name];
      g.strokeStyle = ink(k);
      g.lineWidth = 1.5 * ratio;
      g.beginPath();
      let pen = false;
      s.lines[name].forEach((v, i) => { if (v === null) pen = false; else if (pen) g.lineTo(x(t[i]), y(v)); else { g.moveTo(x(t[i]), y(v)); pen = true; } });
      g.stroke();
      let i = t.findIndex((v) => v >= time - 1e-9);
      if (i < 0) i = t.length - 1;
      if (k === 0 && s.lines[name][i] !== null) value.textContent = Number(s.lines[name][i]).toPrecision(4);
    });
    g.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark");
    g.lineWidth = ratio;
    g.beginPath(); g.moveTo(x(time), 0); g.lineTo(x(time), h); g.stroke();
  } };
});

// --- camera --------------------------------------------------------------------------------------------------------------
const fingers = new Map();
let apart = 0;
canvas.oncontextmenu = (e) => e.preventDefault();
canvas.onpointerdown = (e) => { canvas.setPointerCapture(e.pointerId); fingers.set(e.pointerId, e); apart = 0; };
canvas.onpointerup = canvas.onpointercancel = (e) => { fingers.delete(e.pointerId); apart = 0; };
canvas.onpointermove = (e) => {
  const before = fingers.get(e.pointerId);
  if (!before) return;
  const dx = e.clientX - before.clientX, dy = e.clientY - before.clientY;
  fingers.set(e.pointerId, e);
  if (fingers.size === 2) {
    const [a, b] = [...fingers.values()], now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    if (apart) camera.distance *= apart / now;
    apart = now;
  } else if (e.buttons & 2 || e.shiftKey) {
    const s = camera.distance / canvas.clientHeight * 0.73, right = [-Math.sin(camera.turn), Math.cos(camera.turn), 0];
    const up = cross([Math.cos(camera.tilt) * Math.cos(camera.turn), Math.cos(camera.tilt) * Math.sin(camera.turn), Math.sin(camera.tilt)], right);
    camera.target = camera.target.map((x, a) => x + s * (dy * up[a] - dx * right[a]));
  } else {
    camera.turn -= 0.008 * dx;
    camera.tilt = Math.min(Math.max(camera.tilt + 0.008 * dy, -1.55), 1.55);
  }
  render();
};
canvas.addEventListener("wheel", (e) => { e.preventDefault(); camera.distance *= Math.exp(0.001 * e.deltaY); render(); }, { passive: false });
addEventListener("resize", () => { spread(); render(); });
addEventListener("keydown", (e) => {
  if (e.key === " ") { e.preventDefault(); play(!playing); }
  const frame = (end - start) / 200;
  if (e.key === "ArrowRight") { play(false); go(time + frame); }
  if (e.key === "ArrowLeft") { play(false); go(time - frame); }
});

spread();
fit();
const asked = new URLSearchParams(location.search).get("t") || location.hash.slice(1);  // page.html#1.5 opens at 1.5 s
go(asked ? Number(asked) : start);
if (!asked) play(true);
