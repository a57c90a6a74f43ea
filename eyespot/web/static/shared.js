// A shared list: its photos large, one after the other, by buttons, arrow keys and swipes.
"use strict";
const $ = (what, within = document) => within.querySelector(what);
const { before, photos } = $(".grid").dataset;
const dialog = $("#slides"), tiles = [...document.querySelectorAll(".tile")], further = $(".onward a");
const image = $("img", dialog), previous = $("[data-step='-1']", dialog), next = $("[data-step='1']", dialog);
$("ol.grid").classList.add("brief"); // the facts stand beside the large photo
let at = 0, from = null;
function show(number) {
  if (number >= tiles.length && further) location = further.href;
  if (!tiles[number]) return;
  at = number;
  const small = $("img", tiles[at]);
  image.src = $(".picture", tiles[at]).href;
  image.alt = small.alt;
  $(".about", dialog).replaceChildren(...$(".caption", tiles[at]).cloneNode(true).childNodes);
  $(".place", dialog).textContent = `${Number(before) + at + 1} of ${photos}`;
  previous.disabled = !tiles[at - 1];
  next.disabled = !tiles[at + 1] && !further;
  if (!dialog.open) dialog.showModal();
}
tiles.forEach((tile, number) => $(".picture", tile).addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(number);
}));
for (const button of [previous, next]) button.addEventListener("click", () => show(at + Number(button.dataset.step)));
dialog.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step && !event.altKey) show(at + step);
});
addEventListener("online", () => { if (dialog.open) show(at); });  // what did not come while the network was lost
dialog.addEventListener("close", () => $(".picture", tiles[at]).focus());
dialog.addEventListener("pointerdown", (event) => { from = event.pointerType === "touch" ? event.clientX : null; });
dialog.addEventListener("pointerup", (event) => {
  if (from !== null && Math.abs(event.clientX - from) > 50) show(at + (event.clientX < from ? 1 : -1));
  from = null;
});
