// Why a photo was found, on demand: the button or `w` fetches it and lays the heat over the photo; again, and it is gone.
"use strict";
{ // names of its own: all scripts of a page share theirs
const linkOf = () => document.querySelector("#large[open] [data-act=why], main > .photo [data-act=why], #zoom[open] .why:not([hidden]) [data-act=why]");
const say = (text) => { const told = document.querySelector("#told"); if (told) told.textContent = text; };

async function explain(link) {
  const box = link.closest(".why"), photo = link.closest(".photo"), { href } = link;
  if (box.querySelector(".because, .problem")) return fold(link);
  link.setAttribute("aria-busy", "true");
  const answer = await fetch(href, { headers: { "HX-Request": "true" } }).catch(() => null);
  link.removeAttribute("aria-busy");
  if (!link.isConnected || link.href !== href || box.querySelector(".because")) return;
  const made = document.createElement("div");
  if (answer?.ok) made.innerHTML = await answer.text(); // a page of our own server; its policy runs no script in it
  else {
    made.className = "problem";
    made.setAttribute("role", "alert");
    const why = (await answer?.json().catch(() => null))?.detail;
    made.textContent = why ? `${why[0].toUpperCase()}${why.slice(1)}.` : "The server cannot be reached.";
  }
  box.append(made);
  link.setAttribute("aria-expanded", "true");
  const heat = made.querySelector(".because")?.dataset.heat;
  if (heat) cover(photo, heat);
  say(answer?.ok ? "The reasons are shown." : made.textContent);
}
function fold(link) {
  const box = link.closest(".why"), photo = link.closest(".photo");
  for (const old of box.querySelectorAll(".because, .problem")) old.parentElement === box ? old.remove() : old.parentElement.remove();
  photo.querySelector(".heat")?.remove();
  link.setAttribute("aria-expanded", "false");
  say("The reasons are closed.");
}
// The heat stands where the photo does, also when that is zoomed.
function cover(photo, address) {
  const mat = photo.querySelector(".mat"), image = mat.querySelector("img");
  mat.querySelector(".heat")?.remove();
  const heat = new Image();
  heat.className = "heat";
  heat.alt = "";
  mat.classList.add("heated");
  const place = () => {
    const { offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height } = image;
    Object.assign(heat.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px`, transform: image.style.transform, transformOrigin: getComputedStyle(image).transformOrigin });
    if (!heat.isConnected) { watch.disconnect(); zoom.disconnect(); }
  };
  const watch = new ResizeObserver(place), zoom = new MutationObserver(place);
  heat.addEventListener("load", () => { mat.append(heat); place(); watch.observe(image); zoom.observe(image, { attributes: true, attributeFilter: ["style"] }); });
  heat.src = address;
}
document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest("[data-act=why]");
  const term = event.target.closest(".why a[data-heat]");
  if (link) { event.preventDefault(); explain(link); }
  if (!term) return;
  event.preventDefault();
  for (const row of term.closest("tbody").rows) row.toggleAttribute("aria-current", row === term.closest("tr"));
  cover(term.closest(".photo"), term.dataset.heat);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "w" || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const link = linkOf();
  if (link) explain(link);
});
}
