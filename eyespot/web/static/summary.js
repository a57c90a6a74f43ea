// The summary of a result: a span dragged over the timeline, or a box over the map, becomes a filter. Its bars and
// squares are links without this script, too. It comes into the page when it is opened, so all is listened to from above.
"use strict";
(() => {
const tell = (text) => { document.querySelector("#told").textContent = text; };
const filter = (section, fields) => {
  const address = new URLSearchParams(section.dataset.address);
  for (const [name, value] of Object.entries(fields)) address.set(name, value);
  location.href = `/?${address}`;
};
const linksOf = (svg) => [...svg.querySelectorAll("a")];

// -- a span of the timeline
function mark(svg, from, to) {
  const [first, last] = [Math.min(from, to), Math.max(from, to)], links = linksOf(svg);
  links.forEach((link, at) => link.classList.toggle("in-span", at >= first && at <= last));
  tell(first === last ? links[first].getAttribute("aria-label") : `${links[first].dataset.after} to before ${links[last].dataset.before}`);
  return { after: links[first].dataset.after, before: links[last].dataset.before };
}
const unmark = () => { for (const one of document.querySelectorAll(".in-span")) one.classList.remove("in-span"); };
function barAt(svg, event) {
  const links = linksOf(svg), x = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
  return Math.max(0, Math.min(links.length - 1, Math.floor((x / svg.viewBox.baseVal.width) * links.length)));
}

// -- a box on the map
function placeAt(svg, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [Math.max(-90, Math.min(90, -at.y)), Math.max(-180, Math.min(180, at.x))];
}
function box(svg, [south, west], [north, east]) {
  const ends = [Math.min(south, north), Math.min(west, east), Math.max(south, north), Math.max(west, east)];
  const rect = svg.querySelector(".chosen");
  for (const [name, value] of Object.entries({ x: ends[1], y: -ends[2], width: ends[3] - ends[1], height: ends[2] - ends[0] })) rect.setAttribute(name, value);
  return ends.map((one) => one.toFixed(4)).join(",");
}

// -- hands: a press that does not move is a click on the link under it
let held = null;
document.addEventListener("pointerdown", (event) => {
  const svg = event.target.closest?.(".timeline svg, .spots [role=group]");
  if (!svg || event.button || !event.isPrimary) return;
  const section = svg.closest("section"), time = section.classList.contains("timeline");
  held = { svg, section, time, x: event.clientX, y: event.clientY, from: time ? barAt(svg, event) : placeAt(svg, event), fields: null };
});
document.addEventListener("dragstart", (event) => { if (event.target.closest?.(".timeline svg, .spots [role=group]")) event.preventDefault(); });
document.addEventListener("pointermove", (event) => {
  if (!held || (!held.fields && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 5)) return;
  if (!held.fields) held.svg.setPointerCapture(event.pointerId);
  held.fields = held.time ? mark(held.svg, held.from, barAt(held.svg, event)) : { near: box(held.svg, held.from, placeAt(held.svg, event)) };
});
document.addEventListener("pointerup", () => {
  const done = held;
  held = null;
  if (!done?.fields) return;
  document.addEventListener("click", (event) => { event.preventDefault(); event.stopPropagation(); }, { capture: true, once: true });
  filter(done.section, done.fields);
});
document.addEventListener("pointercancel", () => { held = null; unmark(); });

// -- keys: one stop for Tab in each drawing, arrows within it, Shift for a span
let span = null;
function rove(svg) {
  if (!svg || svg.dataset.roves) return;
  svg.dataset.roves = "yes";
  linksOf(svg).forEach((link, at) => link.setAttribute("tabindex", at ? "-1" : "0"));
  for (const one of svg.closest("section").querySelectorAll(".with-script")) one.hidden = false;
}
const roveAll = () => { for (const svg of document.querySelectorAll(".timeline svg, .spots [role=group]")) rove(svg); };
document.addEventListener("keydown", (event) => {
  const link = document.activeElement?.closest?.(".timeline svg a, .spots [role=group] a");
  if (!link || event.ctrlKey || event.metaKey || event.altKey) return;
  const svg = link.closest("svg"), section = svg.closest("section"), links = linksOf(svg), at = links.indexOf(link), time = section.classList.contains("timeline");
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: -at, End: links.length - 1 - at }[event.key];
  if (step !== undefined) {
    event.preventDefault();
    event.stopPropagation();
    const to = Math.max(0, Math.min(links.length - 1, at + step));
    if (event.shiftKey && time) { span = { svg, from: span?.svg === svg ? span.from : at }; span.fields = mark(svg, span.from, to); } else { span = null; unmark(); }
    link.setAttribute("tabindex", "-1");
    links[to].setAttribute("tabindex", "0");
    links[to].focus();
  } else if (event.key === "Enter" && span?.svg === svg) {
    event.preventDefault();
    event.stopPropagation();
    filter(section, span.fields);
  } else if (event.key === "Escape" && span) { event.stopPropagation(); span = null; unmark(); }
}, true);
document.addEventListener("htmx:afterSettle", roveAll);
roveAll();
})();
