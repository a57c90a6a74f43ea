// Maps of places: outlines and names of countries under the photos, and a scale; a close view shows where on earth it is.
// Outlines are drawn to 1:110 million, so a view of few degrees goes without. They come when a map is first seen.
"use strict";
(() => {
const STEPS = 20, CLOSE = 20, COARSE = 3;  // steps of a degree in the file; the rest in degrees
const made = (name, fields = {}, ...inside) => {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(fields)) one.setAttribute(key, value);
  one.append(...inside);
  return one;
};
let countries;
const outlines = async (address) => (countries ??= fetch(address).then((answer) => answer.json()).then((all) => Object.entries(all.countries)).catch(() => { countries = undefined; return []; }));  // the next map asks again

// What an <svg> shows, which is more than its viewBox where their shapes differ, and the degrees of a pixel
function shownBy(svg) {
  const box = svg.getBoundingClientRect(), back = svg.getScreenCTM().inverse();
  const { x: left, y: top } = new DOMPoint(box.left, box.top).matrixTransform(back);
  return { left, top, wide: box.width * back.a, high: box.height * back.a, pixel: back.a };
}

// Each country in view is named once, on the point of a lattice within it that is nearest to the middle of its part; the
// one in the middle of the view goes first
function nameCountries(svg, land, { left, top, wide, high, pixel }) {
  const lattice = Array.from({ length: 28 * 16 }, (_, at) => [left + ((at % 28) + 0.5) * wide / 28, top + (Math.floor(at / 28) + 0.5) * high / 16]);
  const inside = new Map(), spot = svg.createSVGPoint(), boxes = [...land.children].map((path) => [path, path.getBBox()]);
  for (const [x, y] of [[left + wide / 2, top + high / 2], ...lattice]) {
    Object.assign(spot, { x: x * STEPS, y: y * STEPS });
    const found = boxes.find(([path, box]) => spot.x >= box.x && spot.x <= box.x + box.width && spot.y >= box.y && spot.y <= box.y + box.height && path.isPointInFill(spot))?.[0];
    if (!inside.has(found)) inside.set(found, []);
    inside.get(found).push([x, y]);
  }
  const [middle] = inside.keys();
  inside.delete(undefined);
  const names = made("g", { class: "names-of-land" }), taken = [];
  for (const [path, points] of [...inside].sort((a, b) => (b[0] === middle) - (a[0] === middle) || b[1].length - a[1].length)) {
    const name = path.dataset.name, half = (name.length * 3 + 4) * pixel, mean = [0, 1].map((axis) => points.reduce((sum, one) => sum + one[axis], 0) / points.length);
    const far = (one) => Math.hypot(one[0] - mean[0], one[1] - mean[1]);
    const above = path === middle && svg.classList.contains("locator");  // of the mark
    const [within, y] = above ? [left + wide / 2, top + high / 2 - 14 * pixel] : points.reduce((best, one) => (far(one) < far(best) ? one : best));
    const x = Math.max(left + half, Math.min(left + wide - half, within));
    if (y < top + 6 * pixel || y > top + high - 6 * pixel || (y > top + high - 20 * pixel && x - half < left + wide / 2) || taken.some((one) => Math.abs(one.x - x) < one.half + half && Math.abs(one.y - y) < 12 * pixel)) continue;
    taken.push({ x, y, half });
    names.append(made("text", { transform: `translate(${x} ${y}) scale(${pixel})`, y: 3, "text-anchor": "middle" }, name));
  }
  return names;
}

// A bar of 1, 2 or 5 times a power of ten, from west to east at the middle of the map
function scaleOf({ left, top, wide, high, pixel }) {
  const metres = 111320 * Math.cos(Math.min(85, Math.abs(top + high / 2)) * Math.PI / 180), most = metres * wide / 4;
  const ten = 10 ** Math.floor(Math.log10(most)), long = [5, 2, 1].map((one) => one * ten).find((one) => one <= most);
  const text = long < 1000 ? `${long} m` : `${(long / 1000).toLocaleString("en")} km`, end = long / metres / pixel;
  return made("g", { class: "scale", transform: `translate(${left + 6 * pixel} ${top + high - 6 * pixel}) scale(${pixel})` },
    made("path", { d: `M0-4V0H${end}V-4` }), made("text", { x: end + 4 }, text));
}

async function draw(svg) {
  const all = await outlines(svg.dataset.world), shown = shownBy(svg);
  if (!shown.wide || svg.dataset.drawn === `${shown.wide}`) return;
  for (const old of svg.querySelectorAll(".world")) old.remove();
  svg.dataset.drawn = shown.wide;
  const land = made("g", { class: "land", transform: `scale(${1 / STEPS})` }, ...all.map(([name, d]) => made("path", { d, "data-name": name })));
  if (shown.wide >= COARSE) {
    svg.prepend(made("g", { class: "world", "aria-hidden": "true" }, land));
    land.after(nameCountries(svg, land, shown));
  }
  if (svg.classList.contains("locator")) return;
  svg.append(made("g", { class: "world", "aria-hidden": "true" }, scaleOf(shown)));
  if (shown.wide < CLOSE && !svg.nextElementSibling?.matches(".locator")) locate(svg, shown);
}

// A small map of the surroundings, on which a close view is marked
function locate(svg, { left, top, wide, high }) {
  const x = left + wide / 2, y = Math.max(-75, Math.min(75, top + high / 2));
  const marked = made("circle", { class: "chosen", cx: x, cy: top + high / 2, r: Math.max(1.5, wide / 2) });
  const small = made("svg", { class: "map locator", viewBox: `${x - 30} ${y - 15} 60 30`, "data-world": svg.dataset.world, role: "img", "aria-label": "Where on earth this is" }, marked);
  svg.after(small);
  draw(small);
}

const seen = new IntersectionObserver((all) => { for (const one of all) if (one.isIntersecting) draw(one.target); });
const watch = () => { for (const svg of document.querySelectorAll("svg.map[data-world]:not(.locator)")) seen.observe(svg); };
for (const name of ["htmx:afterSettle", "results-changed"]) document.addEventListener(name, watch);
watch();
})();
