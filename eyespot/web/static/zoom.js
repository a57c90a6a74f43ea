// A large photo from near: wheel, two fingers, a double click and keys; as close as one pixel of the photo on one of the screen.
"use strict";
{ // names of its own: all scripts of a page share theirs; annotate's page has no search.js
const $ = (what, within = document) => within.querySelector(what);
const view = $("#zoom") ?? $("dialog#large"), photo = $("main > .photo");
function pressed(text, act) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  button.addEventListener("click", act);
  return button;
}
const CLOSEST = 8; // pixels of the screen for one of the photo
let lens = null; // the photo that is large, and how one looks at it

function zoomable(photo) {
  const mat = photo && $(".mat", photo), image = mat && $("img", mat);
  if (!image || mat.classList.contains("zooms")) return;
  mat.classList.add("zooms");
  lens = { mat, image, scale: 1, x: 0, y: 0, fingers: new Map(), moved: false, plain: image.src, from: null };
  mat.addEventListener("wheel", (event) => { event.preventDefault(); zoomTo(lens.scale * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event); }, { passive: false });
  mat.addEventListener("dblclick", (event) => { event.preventDefault(); zoomTo(lens.scale > 1 ? 1 : Math.max(2, everyPixel()), event); });
  mat.addEventListener("click", (event) => { if (!event.ctrlKey && !event.metaKey && !event.shiftKey) event.preventDefault(); });
  mat.addEventListener("dragstart", (event) => event.preventDefault());
  mat.addEventListener("pointerdown", press);
  mat.addEventListener("pointermove", drag);
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) mat.addEventListener(end, (event) => { swipe(event); lens.fingers.delete(event.pointerId); mat.classList.remove("dragged"); });
  $(".stage", photo).append(bar());
  image.addEventListener("load", say);
  say();
}
// How many pixels of the photo there are, and how much of the screen it fills when all of it is there
const width = () => Number(lens.image.getAttribute("width")) || lens.image.naturalWidth;
const height = () => Number(lens.image.getAttribute("height")) || lens.image.naturalHeight;
const fit = () => Math.min(lens.mat.clientWidth / width(), lens.mat.clientHeight / height());
const everyPixel = () => 1 / fit() / devicePixelRatio;
function zoomTo(scale, { clientX, clientY } = {}) {
  const { mat } = lens, area = mat.getBoundingClientRect();
  const at = { x: (clientX ?? area.left + area.width / 2) - area.left, y: (clientY ?? area.top + area.height / 2) - area.top };
  const next = Math.min(Math.max(scale, Math.min(1, everyPixel())), Math.max(CLOSEST * everyPixel(), 2));
  lens.x = at.x - (at.x - lens.x) * next / lens.scale;
  lens.y = at.y - (at.y - lens.y) * next / lens.scale;
  lens.scale = next;
  if (next > 1) sharpen();
  shift();
}
function shift() {
  const { mat, image, scale } = lens;
  const inside = (at, side) => (scale < 1 ? side * (1 - scale) / 2 : Math.min(0, Math.max(side * (1 - scale), at)));
  lens.x = inside(lens.x, mat.clientWidth);
  lens.y = inside(lens.y, mat.clientHeight);
  image.style.transform = scale === 1 ? "" : `translate(${lens.x}px, ${lens.y}px) scale(${scale})`;
  image.style.imageRendering = scale > 2.5 * everyPixel() ? "pixelated" : "";
  mat.classList.toggle("closer", scale > 1);
  say();
}
// From near the photo itself is shown, where one may see it, and else the largest copy that the server makes.
function sharpen() {
  const { image, mat } = lens, whole = mat.dataset.original;
  if (!whole || image.dataset.whole || lens.scale * fit() * devicePixelRatio < 1600 / Math.max(width(), height())) return;
  image.dataset.whole = "true";
  const fresh = new Image(), mine = lens;
  fresh.addEventListener("load", () => { if (mine.image.isConnected) mine.image.src = whole; });
  fresh.src = whole;
}
function say() {
  const told = lens && $("output", lens.mat.parentElement);
  if (told) told.textContent = `${Math.round(lens.scale * 100 / everyPixel())} %`;
}
function bar() {
  const made = document.createElement("div");
  made.className = "zoom-bar screen";
  for (const [sign, name, act] of [["−", "Farther", () => zoomTo(lens.scale / 1.5)], ["+", "Closer", () => zoomTo(lens.scale * 1.5)], ["1:1", "One pixel of the photo on one of the screen", () => zoomTo(everyPixel())], ["All", "All of the photo", () => zoomTo(1)]]) {
    const button = pressed(sign, act);
    button.setAttribute("aria-label", name);
    button.title = name;
    made.append(button);
  }
  made.append(document.createElement("output"));
  if (view) made.append(Object.assign(document.createElement("span"), { className: "by-touch", textContent: "Swipe: next photo · two fingers: closer" }));
  return made;
}
function press(event) {
  if (event.button) return;
  lens.from = event.pointerType === "touch" && !lens.fingers.size && lens.scale <= 1 ? event.clientX : null;
  lens.fingers.set(event.pointerId, event);
  lens.mat.setPointerCapture(event.pointerId);
}
// One finger drawn across a whole photo is the arrow key of that way.
function swipe(event) {
  const far = lens.from === null ? 0 : event.clientX - lens.from;
  lens.from = null;
  if (event.type === "pointerup" && Math.abs(far) > 50) lens.mat.dispatchEvent(new KeyboardEvent("keydown", { key: far < 0 ? "ArrowRight" : "ArrowLeft", bubbles: true }));
}
function drag(event) {
  const before = lens.fingers.get(event.pointerId);
  if (!before) return;
  lens.mat.classList.toggle("dragged", lens.scale > 1);
  const other = [...lens.fingers.values()].find((one) => one.pointerId !== event.pointerId);
  lens.fingers.set(event.pointerId, event);
  if (other) {
    const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const middle = { clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 };
    return zoomTo(lens.scale * apart(event) / Math.max(apart(before), 1), middle);
  }
  lens.x += event.clientX - before.clientX;
  lens.y += event.clientY - before.clientY;
  return shift();
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select") || !lens?.mat.isConnected) return;
  if (!photo && !view?.open) return;
  const act = { "+": () => zoomTo(lens.scale * 1.5), "=": () => zoomTo(lens.scale * 1.5), "-": () => zoomTo(lens.scale / 1.5), 0: () => zoomTo(1), 1: () => zoomTo(everyPixel()) }[event.key];
  if (act) { event.preventDefault(); act(); }
});
addEventListener("resize", () => { if (lens?.mat.isConnected) zoomTo(lens.scale); });
if (view) new MutationObserver(() => zoomable($(".photo", view))).observe(view, { childList: true });
zoomable(photo ?? $("#zoom .photo"));
// Another photo in the same place begins whole.
$("#zoom #large")?.addEventListener("load", () => { if (!lens.image.dataset.whole) zoomTo(1); });
}
