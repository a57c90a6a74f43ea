// The map of the collection: points by WebGL, names of clusters over them, a lasso. Without it the table still tells.
"use strict";
const { Finder, inPolygon, simplified } = globalThis.mapPoints;
const $ = (what) => document.querySelector(what);
const plot = $("#plot"), hover = $("#hover"), chosen = $("#chosen-photos"), about = plot.dataset;
const tell = (text) => { $("#told").textContent = text; };
const made = (tag, fields = {}, ...inside) => { const one = Object.assign(document.createElement(tag), fields); one.append(...inside); return one; };
const query = (fields) => { const all = new URLSearchParams(fields); if (about.encoder) all.set("encoder", about.encoder); return all; };
const SIDE = 65535, REACH = 14, RESTING = 200;

async function bytes(what, fields, Kind) {
  const answer = await fetch(`/v1/map/${what}?${fields}`);
  if (!answer.ok) throw new Error((await answer.json().catch(() => null))?.detail ?? `the server answers ${answer.status}`);
  return new Kind(await answer.arrayBuffer());
}
const colourOf = (name) => {
  const [, ...parts] = /^#(..)(..)(..)$/.exec(getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return parts.map((one) => parseInt(one, 16));
};

class Picture {
  constructor(positions, codes, lit) {
    this.finder = new Finder(positions);
    this.count = positions.length / 2;
    this.order = shuffled(this.count);  // so that the first of them are a fair sample of all
    this.positions = new Uint16Array(positions.length);
    for (let at = 0; at < this.count; at++) { this.positions[2 * at] = positions[2 * this.order[at]]; this.positions[2 * at + 1] = positions[2 * this.order[at] + 1]; }
    this.codes = codes;
    this.lit = lit;
    this.paint();
  }
  paint() {
    const hues = Array.from({ length: 12 }, (_, at) => colourOf(`--hue${at}`)), dim = this.lit !== null;
    this.colours = new Uint8Array(4 * this.count);
    const grey = colourOf("--hue11"), mark = colourOf("--mark"), many = this.count > 50000;
    for (let at = 0; at < this.count; at++) {
      const hue = dim ? grey : hues[this.codes ? this.codes[this.order[at]] : 0];
      this.colours[4 * at] = hue[0]; this.colours[4 * at + 1] = hue[1]; this.colours[4 * at + 2] = hue[2]; this.colours[4 * at + 3] = dim ? (many ? 110 : 200) : many ? 150 : 215;
    }
    if (!dim) return;
    const all = this.finder.positions;
    this.litPositions = new Uint16Array(2 * this.lit.length);
    this.litColours = new Uint8Array(4 * this.lit.length);
    for (let at = 0; at < this.lit.length; at++) {
      const hit = this.lit[this.lit.length - 1 - at], code = this.codes ? this.codes[hit] : 11;  // the best on top
      this.litPositions.set([all[2 * hit], all[2 * hit + 1]], 2 * at);
      this.litColours.set([...(code < 10 ? hues[code] : mark), 255], 4 * at);
    }
  }
  // Pixels of a point's side
  size(zoom) { return Math.min(14, (this.count > 100000 ? 2 : this.count > 5000 ? 3 : plot.clientWidth < 500 ? 4.5 : 7) + Math.max(0, zoom - 10) * 1.5); }
}
function shuffled(count) {
  const order = new Uint32Array(count);
  let state = 12345;
  for (let at = 0; at < count; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const other = state % (at + 1);
    order[at] = order[other];
    order[other] = at;
  }
  return order;
}

let picture, paper, view, names = [], frame = 0, resting = 0;
const box = () => plot.getBoundingClientRect();
const onScreen = (x, y) => [plot.clientWidth / 2 + (x - view.target[0]) * 2 ** view.zoom, plot.clientHeight / 2 - (y - view.target[1]) * 2 ** view.zoom];
const onMap = (left, top) => [view.target[0] + (left - plot.clientWidth / 2) / 2 ** view.zoom, view.target[1] - (top - plot.clientHeight / 2) / 2 ** view.zoom];

function whole() {
  const [west, south, east, north] = picture.finder.bounds.map((one) => one / SIDE);
  const zoom = Math.log2(Math.min(plot.clientWidth / (east - west + 0.02), plot.clientHeight / (north - south + 0.02)) * 0.94);
  return { target: [(west + east) / 2, (south + north) / 2, 0], zoom };
}
function show(next) {
  view = { ...next, zoom: Math.max(6, Math.min(20, next.zoom)), target: [...next.target.slice(0, 2).map((one) => Math.max(-0.5, Math.min(1.5, one))), 0] };
  clearTimeout(resting);
  resting = setTimeout(rest, RESTING);
  hover.hidden = true;
  frame ||= requestAnimationFrame(() => draw(true));
}
function rest() {
  history.replaceState({ ...history.state, view: [...view.target, view.zoom] }, "");
  draw();
}
function draw(moving = false) {
  frame = 0;
  paper.draw(view, moving);
  label();
}
// Zoom by so many doublings, with the place at (left, top) where it is.
function zoomAt(left, top, doublings) {
  const [x, y] = onMap(left, top), zoom = Math.max(6, Math.min(20, view.zoom + doublings));
  show({ zoom, target: [x - (left - plot.clientWidth / 2) / 2 ** zoom, y + (top - plot.clientHeight / 2) / 2 ** zoom, 0] });
}
function move(right, up) {
  const step = 2 ** -view.zoom;
  show({ ...view, target: [view.target[0] + right * step, view.target[1] + up * step, 0] });
}
const closer = (doublings) => zoomAt(plot.clientWidth / 2, plot.clientHeight / 2, doublings);

// -- names of clusters, the largest first; one that would lie on another waits until there is room
function label() {
  const taken = [];
  for (const name of names) {
    const [left, y] = onScreen(name.x, name.y), wide = name.width / 2 + 2;
    const x = left > 0 && left < plot.clientWidth ? Math.max(wide, Math.min(plot.clientWidth - wide, left)) : left;  // whole at an edge
    const here = [x - wide, y - 11, x + wide, y + 11];
    const free = here[2] > 0 && here[0] < plot.clientWidth && here[3] > 0 && here[1] < plot.clientHeight
      && !taken.some((one) => here[0] < one[2] && here[2] > one[0] && here[1] < one[3] && here[3] > one[1]);
    name.element.hidden = !free;
    if (!free) continue;
    taken.push(here);
    name.element.style.transform = `translate(${Math.round(x - name.width / 2)}px, ${Math.round(y - 10)}px)`;
  }
}
function nameClusters() {
  const over = made("div", { className: "names", ariaHidden: "true" });
  plot.append(over);
  for (const row of document.querySelectorAll("#clusters tr[data-name]")) {
    if (!row.dataset.name) continue;
    const element = made("span", { textContent: row.dataset.name });
    over.append(element);
    names.push({ element, x: +row.dataset.x, y: +row.dataset.y, width: element.offsetWidth });
  }
}

// -- what is under the pointer
const known = new Map();
async function item(at) {
  if (!known.has(at)) {
    const fields = query({ version: about.version, at });
    known.set(at, fetch(`/v1/map/items?${fields}`).then(async (answer) => (answer.ok ? (await answer.json()).items[0] : null)).catch(() => null));
  }
  return known.get(at);
}
const photoOf = (one) => `/photo/${encodeURIComponent(one.id)}?${about.address}`;
function under(event) {
  const here = box(), [x, y] = onMap(event.clientX - here.left, event.clientY - here.top);
  return picture.finder.nearest(x * SIDE, y * SIDE, (REACH / 2 ** view.zoom) * SIDE);
}
let wanted = -1;
async function point(event) {
  const at = under(event), x = event.clientX, y = event.clientY;
  plot.classList.toggle("pointing", at >= 0);
  if (at < 0) { wanted = -1; hover.hidden = true; return; }
  if (at === wanted) return place(x, y);
  wanted = at;
  await new Promise((done) => setTimeout(done, 60));
  if (wanted !== at) return;
  const one = await item(at);
  if (!one || wanted !== at) return;
  hover.replaceChildren(made("img", { src: one.thumbnail, alt: "" }), made("p", { textContent: one.name, dir: "auto" }));
  hover.hidden = false;
  place(x, y);
}
function place(x, y) {
  const left = x + 225 > innerWidth ? x - 222 : x + 14, top = Math.max(4, Math.min(y + 14, innerHeight - hover.offsetHeight - 8));
  hover.style.transform = `translate(${Math.max(4, left)}px, ${top}px)`;
}

async function openPhoto(event) {
  const at = under(event), one = at < 0 ? null : await item(at);
  if (one) location.href = photoOf(one);
}

// -- the lasso
const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), outline = document.createElementNS("http://www.w3.org/2000/svg", "polygon");
svg.classList.add("drawn");
svg.ariaHidden = "true";
svg.append(outline);
let drawing = null, corners = null;
const choosing = () => $("#lasso").ariaPressed === "true";
function lasso(on) { $("#lasso").ariaPressed = String(on); plot.classList.toggle("choosing", on); if (on) tell("The lasso is on: drag around photos."); }
function trace() { outline.setAttribute("points", (drawing ?? []).map((one) => one.join(",")).join(" ")); }
function closeLasso() {
  const around = drawing;
  drawing = null;
  if (around.length < 3) { trace(); return; }
  corners = simplified(around.map(([left, top]) => onMap(left, top).map((one) => Math.max(0, Math.min(SIDE, Math.round(one * SIDE))))), 150);
  lasso(false);
  choose();
}
async function choose() {
  const inside = inPolygon(picture.finder.positions, corners), region = `${about.map}:${corners.flat().join(",")}`;
  outline.setAttribute("points", "");
  chosen.hidden = false;
  if (!inside.length) { chosen.replaceChildren(made("p", { textContent: "No photo lies in there; draw around some points." })); tell("No photo lies in there."); return; }
  const address = new URLSearchParams(about.address);
  address.set("region", region);
  const only = query({ region });
  const heading = made("h2", { textContent: `${quantity(inside.length, "photo")} chosen` });
  const links = made("p", {}, made("a", { className: "button main", href: `/?${only}`, textContent: "Show them" }));
  if (address.get("q") || address.get("picture") || address.get("like")) links.append(" ", made("a", { className: "button", href: `/?${address}`, textContent: "Search among them" }));
  links.append(" ", Object.assign(made("button", { type: "button", textContent: "Clear the selection" }), { onclick: () => { chosen.hidden = true; corners = null; $("#lasso").focus(); } }));
  const few = made("ul", { className: "few" });
  chosen.replaceChildren(heading, links, ...(about.lists ? [saving(region, inside.length)] : []), few);
  tell(heading.textContent);
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  const fields = query({ version: about.version });
  const step = Math.max(1, inside.length / 24);
  for (let at = 0; at < inside.length && fields.getAll("at").length < 24; at += step) fields.append("at", inside[Math.floor(at)]);
  const answer = await fetch(`/v1/map/items?${fields}`).catch(() => null);
  if (!answer?.ok) return;
  for (const one of (await answer.json()).items) few.append(made("li", {}, made("a", { href: photoOf(one) }, made("img", { src: one.thumbnail, alt: one.name, loading: "lazy" }))));
}
function saving(region, count) {
  const name = made("input", { maxLength: 120, required: true, autocomplete: "off", placeholder: "a name for them" });
  const form = made("form", { className: "save" }, made("label", {}, made("span", { className: "unseen", textContent: "A name for the list" }), name), made("button", { textContent: "Save as a list" }));
  const said = made("p", { className: "small", role: "status" });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    said.textContent = "It is being saved.";
    try { const list = await save(name.value, region, count); said.replaceChildren(made("a", { href: list.page, textContent: `To the list “${list.name}”` })); } catch (error) { said.textContent = `It was not saved: ${error.message}.`; }
  });
  return made("div", {}, form, said);
}
const PART = 10000;  // ids of a request: a server takes at most 1 MiB
async function save(name, region, count) {
  let list = null;
  for (let first = 0; first < count; first += PART) {
    const answer = await fetch(`/v1/map/region?${query({ region, first, limit: PART })}`);
    if (!answer.ok) throw new Error("the server does not say which photos they are");
    const { ids } = await answer.json(), more = list !== null;
    const body = JSON.stringify(more ? { items: ids } : { name, items: ids, query: about.address || undefined });
    const kept = await fetch(more ? `/v1/lists/${list.list}` : "/v1/lists", { method: more ? "PATCH" : "POST", headers: { "Content-Type": "application/json" }, body });
    if (!kept.ok) throw new Error((await kept.json().catch(() => null))?.detail ?? `the server answers ${kept.status}`);
    list ??= await kept.json();
  }
  return list;
}

// -- hands: one pointer moves the map or draws, two zoom it, a wheel zooms at its place
function listen() {
  const spot = (event) => { const here = box(); return [event.clientX - here.left, event.clientY - here.top]; };
  const held = new Map();
  let pressed = null;
  plot.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pressed = event.isPrimary ? spot(event) : null;
    held.set(event.pointerId, spot(event));
    plot.setPointerCapture(event.pointerId);
    drawing = held.size === 1 && (event.shiftKey || choosing()) ? [spot(event)] : null;
    if (drawing) event.preventDefault();
    else trace();
  });
  plot.addEventListener("pointermove", (event) => {
    const now = spot(event), before = held.get(event.pointerId);
    if (!before) { if (event.pointerType !== "touch") point(event); return; }
    held.set(event.pointerId, now);
    if (drawing) { drawing.push(now); return trace(); }
    const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) return move(before[0] - now[0], now[1] - before[1]);
    const apart = (one) => Math.max(1, Math.hypot(one[0] - other[0], one[1] - other[1]));
    move((before[0] - now[0]) / 2, (now[1] - before[1]) / 2);
    zoomAt((now[0] + other[0]) / 2, (now[1] + other[1]) / 2, Math.log2(apart(now) / apart(before)));
  });
  const release = (event) => { held.delete(event.pointerId); };
  plot.addEventListener("pointerup", (event) => {
    release(event);
    const now = spot(event), still = pressed && Math.hypot(now[0] - pressed[0], now[1] - pressed[1]) < 5;
    if (drawing) { closeLasso(); return; }
    if (still) openPhoto(event);
  });
  plot.addEventListener("pointercancel", (event) => { release(event); drawing = null; trace(); });
  plot.addEventListener("wheel", (event) => { event.preventDefault(); zoomAt(...spot(event), -event.deltaY * (event.deltaMode ? 0.05 : 0.002)); }, { passive: false });
  plot.addEventListener("dblclick", (event) => { if (under(event) < 0) zoomAt(...spot(event), 1); });
  plot.addEventListener("pointerleave", () => { wanted = -1; hover.hidden = true; });
  document.addEventListener("keydown", (event) => {
    const at = event.target, elsewhere = !plot.contains(at) && at.closest("input, select, textarea, button, a, summary");
    if (event.ctrlKey || event.metaKey || event.altKey || elsewhere || (event.key.startsWith("Arrow") && at !== plot)) return;
    const far = 60, acts = { ArrowLeft: () => move(-far, 0), ArrowRight: () => move(far, 0), ArrowUp: () => move(0, far), ArrowDown: () => move(0, -far),
      "+": () => closer(0.5), "=": () => closer(0.5), "-": () => closer(-0.5), 0: () => show(whole()), l: () => lasso(!choosing()), Escape: () => { drawing = null; trace(); lasso(false); hover.hidden = true; } };
    if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  });
  $("#in").onclick = () => closer(0.5);
  $("#out").onclick = () => closer(-0.5);
  $("#fit").onclick = () => show(whole());
  $("#lasso").onclick = () => lasso(!choosing());
  for (const row of document.querySelectorAll("#clusters tr[data-x]")) row.addEventListener("pointerenter", () => row.dataset.name && mark(row));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { picture.paint(); draw(); });
  new ResizeObserver(() => draw()).observe(plot);
  for (const one of document.querySelectorAll("#tools select")) one.addEventListener("change", () => $("#tools").requestSubmit());
}
function mark(row) { for (const name of names) name.element.style.outline = name.x === +row.dataset.x && name.y === +row.dataset.y ? "2px solid var(--mark)" : ""; }

async function begin() {
  const version = query({ version: about.version }), wanting = [bytes("points", version, Uint16Array)];
  const coloured = query({ version: about.version, column: about.colour }), hits = new URLSearchParams(about.address);
  hits.set("version", about.version);
  hits.set("depth", about.depth);
  wanting.push(about.colour ? bytes("colours", coloured, Uint8Array) : null, "lit" in about ? bytes("hits", hits, Uint32Array) : null);
  picture = new Picture(...(await Promise.all(wanting)));
  const before = history.state?.view;
  view = before ? { ...whole(), target: before.slice(0, 3), zoom: before[3] } : whole();
  plot.replaceChildren();
  plot.tabIndex = 0;
  plot.role = "application";
  plot.ariaLabel = `Map of ${quantity(picture.count, "photo")}; the table of clusters says the same in words`;
  paper = globalThis.mapDrawing.drawn(plot, picture, view, location.hash.slice(1));
  await paper.ready;
  nameClusters();
  plot.append(svg);
  label();
  listen();
  $("#plot-buttons").hidden = false;
  plot.dataset.ready = Math.round(performance.now());
}
begin().catch((error) => {
  plot.replaceChildren(made("p", { className: "waiting", textContent: `The map cannot be drawn here (${error.message}); the table of its clusters says the same in words.` }));
  plot.dataset.failed = error.message;
});
