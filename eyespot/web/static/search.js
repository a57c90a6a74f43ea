// The search page's keys, dropped pictures, large view and verdicts. Without this script the page still searches.
"use strict";
const $ = (what, within = document) => within.querySelector(what);
const all = (what) => [...document.querySelectorAll(what)];
const tell = (text) => { $("#told").textContent = text; };
const form = $("#search"), grid = $("#grid"), large = $("#large"), keys = $("#keys");

// -- a picture: chosen, dropped or pasted
async function searchWith(file) {
  if (!file || !file.type.startsWith("image/")) return tell("That is no picture.");
  tell("The picture is being sent.");
  const body = new FormData();
  body.append("picture", file);
  const answer = await fetch("/v1/pictures", { method: "POST", body });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) return complain(told.detail || "The picture could not be sent.");
  $("#picture").value = told.picture;
  form.requestSubmit();
}

function complain(text) {
  const box = document.createElement("p");
  box.className = "problem";
  box.setAttribute("role", "alert");
  box.textContent = text;
  for (const old of all(".found .problem, .about .problem")) old.remove();
  ($("#large[open] .about") || $(".found") || $("main")).prepend(box);
}

if (form) {
  $("#file").addEventListener("change", (event) => searchWith(event.target.files[0]));
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (file) { event.preventDefault(); searchWith(file); }
  });
  const drop = $("#drop");
  const carries = (event) => [...event.dataTransfer.types].includes("Files");
  document.addEventListener("dragover", (event) => { if (carries(event)) { event.preventDefault(); drop.hidden = false; } });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.hidden = true; });
  document.addEventListener("drop", (event) => {
    drop.hidden = true;
    if (carries(event)) { event.preventDefault(); searchWith(event.dataTransfer.files[0]); }
  });
  // Empty boxes would only make the address long.
  form.addEventListener("submit", () => { for (const one of form.elements) if (one.name && !one.value) one.disabled = true; });
  addEventListener("pageshow", () => { for (const one of form.elements) one.disabled = false; });
}

// -- pictures that cannot be shown
document.addEventListener("error", (event) => {
  if (event.target.tagName === "IMG") event.target.closest(".picture")?.classList.add("failed");
}, true);

// -- filters on a small screen, the link, the map
const filters = $("#filters"), showing = $("#show-filters");
if (showing) {
  showing.hidden = false;
  const small = matchMedia("(max-width: 59.99rem)");
  const fold = () => { filters.hidden = small.matches; showing.setAttribute("aria-expanded", String(!filters.hidden)); };
  small.addEventListener("change", fold);
  fold();
  showing.addEventListener("click", () => {
    filters.hidden = !filters.hidden;
    showing.setAttribute("aria-expanded", String(!filters.hidden));
  });
}
const copy = $("#copy");
if (copy && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(new URL(copy.dataset.link, location.href).href);
    copy.textContent = "Copied";
    tell("The link is in the clipboard.");
  });
}
const map = $("#map");
if (map) {
  const box = $("#box"), chosen = $("#chosen");
  let from = null;
  const place = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    return { lon: Math.max(-180, Math.min(180, at.x)), lat: Math.max(-90, Math.min(90, -at.y)) };
  };
  const draw = () => {
    const [south, west, north, east] = box.value.split(",").map(Number);
    const good = box.value && [south, west, north, east].every(Number.isFinite);
    const given = good ? { x: west, y: -north, width: Math.max(0, east - west), height: north - south } : { width: 0, height: 0 };
    for (const [name, value] of Object.entries(given)) chosen.setAttribute(name, value);
  };
  map.addEventListener("pointerdown", (event) => { from = place(event); map.setPointerCapture(event.pointerId); });
  map.addEventListener("pointermove", (event) => {
    if (!from) return;
    const to = place(event);
    const ends = [Math.min(from.lat, to.lat), Math.min(from.lon, to.lon), Math.max(from.lat, to.lat), Math.max(from.lon, to.lon)];
    box.value = ends.map((one) => one.toFixed(4)).join(",");
    draw();
  });
  map.addEventListener("pointerup", () => { from = null; });
  box.addEventListener("input", draw);
  draw();
}

// -- one photo large
let shown = null; // the tile whose photo is large
async function show(tile) {
  shown = tile;
  const answer = await fetch($(".picture", tile).href, { headers: { "HX-Request": "true", Accept: "text/html" } });
  if (shown !== tile) return; // somebody has gone on meanwhile
  if (!answer.ok) return complain("The photo cannot be shown.");
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!$(".bar-of-photo", large)) large.append(barOfPhoto());
  $(".photo", large)?.remove();
  large.append(...parsed.body.children);
  large.setAttribute("aria-label", $("h2", large)?.textContent || "Photo");
  if (!large.open) large.showModal();
  tell($("h2", large)?.textContent || "");
}
function barOfPhoto() {
  const bar = document.createElement("div");
  bar.className = "bar-of-photo";
  for (const [sign, name, act] of [["×", "Close", () => large.close()], ["‹", "Previous photo", () => step(-1)], ["›", "Next photo", () => step(1)]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = sign;
    button.setAttribute("aria-label", name);
    button.addEventListener("click", act);
    bar.append(button);
  }
  return bar;
}
const tiles = () => [...grid.querySelectorAll(".tile")];
function step(by) {
  const every = tiles(), next = every[every.indexOf(shown) + by];
  if (next) { next.scrollIntoView({ block: "nearest" }); show(next); }
}
if (grid) {
  grid.addEventListener("click", (event) => {
    const link = event.target.closest(".picture");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    show(link.closest(".tile"));
  });
  large.addEventListener("close", () => { if (shown) $(".picture", shown).focus(); shown = null; });
  large.addEventListener("click", (event) => { if (event.target === large) large.close(); });
}

// -- verdicts
const said = { y: "yes", n: "no", d: "doubt" };
const marks = { yes: "✓ yes", no: "✕ no", doubt: "? doubt" };
async function judge(what, verdict) {
  const asked = new URLSearchParams(location.search);
  if (!asked.get("q") && !asked.get("picture")) return tell("Search for words or a picture first: a verdict is on what was asked.");
  const body = JSON.stringify({
    q: asked.get("q"), picture: asked.get("picture"), item: what.dataset.id, verdict, rank: Number(what.dataset.rank) || null,
  });
  const answer = await fetch("/v1/judgements", { method: "POST", body, headers: { "Content-Type": "application/json" } }).catch(() => null);
  if (!answer?.ok) return complain((await answer?.json().catch(() => null))?.detail || "The verdict could not be kept; try again.");
  for (const one of all(`[data-id="${CSS.escape(what.dataset.id)}"]`)) mark(one, verdict);
  tell(`Kept: ${verdict}.`);
  if (grid && "spread" in grid.dataset && !large.open) onward(what);
}
// Of a spread the next photo without a verdict comes by itself.
function onward(from) {
  const every = tiles(), at = every.indexOf(from);
  const next = [...every.slice(at + 1), ...every.slice(0, at)].find((one) => !one.dataset.verdict);
  (next ? $(".picture", next) : $("#onward")).focus();
}
function mark(one, verdict) {
  one.dataset.verdict = verdict;
  const place = $(".said", one);
  if (place) place.textContent = marks[verdict];
  for (const button of one.querySelectorAll("button[data-verdict]")) button.setAttribute("aria-pressed", String(button.dataset.verdict === verdict));
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-verdict]");
  if (button) judge(button.closest("[data-id]"), button.dataset.verdict);
});

// -- keys
function columnsOf(every) {
  const top = every[0].offsetTop;
  const second = every.findIndex((one) => one.offsetTop !== top);
  return second < 0 ? every.length : second;
}
function move(event, current) {
  const every = tiles();
  if (!every.length) return;
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columnsOf(every), ArrowDown: columnsOf(every) }[event.key];
  const at = current ? every.indexOf(current) + by : 0;
  const next = every[Math.min(at, every.length - 1)];
  if (at < 0 || !next) return;
  event.preventDefault();
  $(".picture", next).focus();
  next.scrollIntoView({ block: "nearest" });
  // Keys do not scroll to where the next photos are asked for.
  if (at >= every.length - 2 * columnsOf(every)) window.htmx?.trigger(".more", "revealed");
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (event.key === "?" && keys) return keys.open || large.open ? null : keys.showModal();
  if (event.key === "/" && form && !large.open) { event.preventDefault(); return $("#q").focus(); }
  if (keys?.open) return;
  if (event.repeat && !event.key.startsWith("Arrow")) return; // a key held down has looked at nothing
  if (large?.open) {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  }
  const current = large?.open ? shown : document.activeElement?.closest(".tile") || $("main > .photo");
  if (event.key.startsWith("Arrow") && grid && !large.open && (current || document.activeElement === document.body)) return move(event, current);
  if (!current) return;
  if (said[event.key]) judge(current, said[event.key]);
  const act = { m: "like", x: "unlike" }[event.key];
  if (act) $(`[data-act=${act}]`, current)?.click();
});
