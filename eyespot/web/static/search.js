// The search page: dropped pictures, the grid, the large view. Verdicts and keys are in files of their own. Without scripts the page still searches.
"use strict";
const $ = (what, within = document) => within.querySelector(what);
const all = (what) => [...document.querySelectorAll(what)];
const tell = (text) => { $("#told").textContent = text; };
const form = $("#search"), grid = $("#grid"), large = $("#large"), keys = $("#keys");

// -- what goes wrong: said where one looks, with another try
function complain(text, again) {
  quiet();
  const box = document.createElement("div"), words = document.createElement("span");
  box.className = "problem toast";
  box.setAttribute("role", "alert");
  words.textContent = text;
  box.append(words);
  if (again) box.append(pressed("Try again", () => { quiet(); again(); }));
  box.append(pressed("Close", quiet));
  ($("#large[open]") || document.body).append(box);
  tell("");
}
const quiet = () => { for (const old of all(".toast")) old.remove(); };
function pressed(text, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", act);
  return button;
}
const UNREACHED = "the server cannot be reached";
// The answer, or null where it is none; `wrong` is told what the server says of it.
async function ask(address, init, wrong) {
  const answer = await fetch(address, init).catch(() => null);
  if (answer?.ok) return answer;
  wrong((await answer?.json().catch(() => null))?.detail || (answer ? `the server answers ${answer.status}` : UNREACHED), answer?.status);
  return null;
}

// -- a picture: chosen, dropped or pasted
async function searchWith(file) {
  if (!file || !file.type.startsWith("image/")) return tell("That is not a picture.");
  tell("The picture is being sent.");
  const body = new FormData();
  body.append("picture", file);
  const failed = (why) => complain(`The picture was not sent: ${why}.`, () => searchWith(file));
  const answer = await ask("/v1/pictures", { method: "POST", body }, failed);
  if (!answer) return;
  $("#picture").value = (await answer.json()).picture;
  form.requestSubmit();
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
  // Empty boxes would only make the address long; another query has no verdicts, and no judge has looked at it.
  form.addEventListener("submit", () => {
    const asks = [$("#q"), $("#picture")];
    if (asks.some((one) => one.value !== one.dataset.was)) for (const name of ["verdict", "rerank"]) if (form.elements[name]) form.elements[name].disabled = true;
    for (const one of form.elements) if (one.name && !one.value) one.disabled = true;
  });
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
function offerCopy() {
  const copy = $("#copy");
  if (!copy || !navigator.clipboard) return;
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(new URL(copy.dataset.link, location.href).href);
    const local = /^(localhost|127\.|\[::1\]|::1)/.test(location.hostname);
    copy.textContent = local ? "Copied, for this computer alone" : "Copied";
    tell("The link is in the clipboard.");
  });
}
offerCopy();
document.addEventListener("results-changed", () => { offerCopy(); watchTheEnd(); });
function drawMap() {
  const map = $("#map");
  if (!map) return;
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
  map.addEventListener("pointerup", () => { from = null; if (box.value !== box.defaultValue) document.dispatchEvent(new CustomEvent("map-chosen")); });
  box.addEventListener("input", draw);
  draw();
}

// -- menus: closed by Esc and by a click elsewhere, which opens no photo
addEventListener("click", (event) => {
  const open = all(".menu[open]").filter((menu) => !menu.contains(event.target));
  for (const menu of open) menu.open = false;
  if (open.length && event.target.closest("#grid")) { event.preventDefault(); event.stopPropagation(); }
}, true);
function closeMenus() {
  for (const menu of all(".menu[open]")) { menu.open = false; $("summary", menu).focus(); }
}

// -- more photos: as one scrolls, as keys or the large view come to the last, and again when the network is back
const tiles = () => [...grid.querySelectorAll(".tile")];
// What is in a photo's tile, also where the tile is far from the screen and its inside is kept beside the page.
const inside = (what, tile) => $(what, tile.asleep ?? tile);
function sleep(tile) {
  tile.asleep = document.createDocumentFragment();
  tile.asleep.append(...tile.childNodes);
}
// What is far from the screen takes no focus.
function wake(tile) {
  const block = tile.closest(".block.far");
  if (block) wakeBlock(block);
  return tile;
}
function wakeBlock(block) {
  if (!block.classList.contains("far")) return;
  block.classList.remove("far");
  block.style.height = "";
  for (const one of block.querySelectorAll(".tile")) {
    if (!one.asleep) continue;
    one.append(one.asleep);
    delete one.asleep;
  }
  tryAgain(block);
}
// Photos that did not come: the network may have been away.
function tryAgain(within) {
  for (const image of within.querySelectorAll(".picture.failed img")) {
    image.closest(".picture").classList.remove("failed");
    image.src = image.src;
  }
}
let coming = null;
function more(least = 1) {
  coming ??= loadMore(least).finally(() => { coming = null; });
  return coming;
}
// At least so many more photos, where there are so many; laid out once.
async function loadMore(least) {
  const last = grid && $(".more", grid), fresh = [];
  if (!last) return false;
  for (let next = last; next && fresh.length < least;) {
    const answer = await ask(next.dataset.next, { headers: { "HX-Request": "true" } }, (why) => stall(last, why));
    if (!answer) return false;
    if (next !== last) fresh.pop();
    fresh.push(...new DOMParser().parseFromString(await answer.text(), "text/html").body.children);
    next = fresh.at(-1)?.matches(".more") ? fresh.at(-1) : null;
  }
  last.replaceWith(...fresh);
  tryAgain(document);
  watchTheEnd();
  return true;
}
function stall(last, why) {
  $(".problem", last)?.remove();
  const box = document.createElement("p");
  box.className = "problem";
  box.setAttribute("role", "alert");
  box.append(`The next photos did not come: ${why}. `, pressed("Try again", () => more()));
  last.prepend(box);
  setTimeout(() => { if (box.isConnected) more(); }, 4000);
}
const end = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) more(); }, { rootMargin: "200px" });
function watchTheEnd() {
  end.disconnect();
  const last = grid && $(".more", grid);
  if (last) end.observe(last);
}
addEventListener("online", () => { if (grid && $(".more .problem", grid)) more(); });

// -- Back brings the photos that were there, and the place among them
const placeName = () => `eyespot-place ${location.pathname}${location.search}`;
addEventListener("pagehide", keepPlace);
function keepPlace() {
  if (!grid) return;
  // Of a group that was opened the first is there again, and the others are not
  const every = tiles().filter((one) => !one.matches(".member")), top = every.indexOf(topmost(grid.children));
  if (top < 0) return;
  const from = every[top].getBoundingClientRect().top;
  sessionStorage.setItem(placeName(), JSON.stringify({ count: every.length, at: scrollY ? top : -1, from, here: every.indexOf(focused()) }));
}
// The first photo that is on the screen or below it
function topmost(several) {
  const first = [...several].find((one) => !one.matches(".member") && one.getBoundingClientRect().bottom > 0);
  return first?.matches(".block") ? topmost(first.firstChild.children) : first;
}
const focused = () => document.activeElement?.closest(".tile") ?? null;
async function comeBack(anyhow = false) {
  const kept = sessionStorage.getItem(placeName());
  if (!kept || (!anyhow && performance.getEntriesByType("navigation")[0]?.type === "navigate")) return;
  history.scrollRestoration = "manual";
  const { count, at, from, here } = JSON.parse(kept);
  while (tiles().length < count && await more(count - tiles().length));
  const every = tiles();
  if (every[here]) $(".picture", wake(every[here])).focus({ preventScroll: true });
  if (!every[at]) return;
  wake(every[at]).scrollIntoView();
  // What was never on the screen has a height that is only guessed, so the place is known after it was drawn.
  for (let round = 0; round < 3; round += 1) {
    await new Promise((done) => requestAnimationFrame(done));
    scrollBy(0, every[at].getBoundingClientRect().top - from);
  }
}
if (grid) { watchTheEnd(); comeBack(); }

// -- one photo large
let shown = null; // the tile whose photo is large, or will be once it has come
async function show(tile) {
  shown = tile;
  const failed = (why) => {
    if (shown !== tile) return;
    if (!large.open) shown = null;
    complain(`The photo cannot be shown: ${why}.`, () => show(tile));
  };
  const answer = await ask(inside(".picture", tile).href, { headers: { "HX-Request": "true", Accept: "text/html" } }, failed);
  if (!answer || shown !== tile) return; // somebody has gone on meanwhile
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  quiet();
  if (!$(".bar-of-photo", large)) large.append(barOfPhoto());
  $(".photo", large)?.remove();
  large.append(...parsed.body.children);
  // What was said here a moment ago may not have been on the disk when this came.
  if (isWaiting(tile.dataset.id)) mark($(".photo", large), tile.dataset.verdict || "");
  large.setAttribute("aria-label", $("h2", large)?.textContent || "Photo");
  if (!large.open) large.showModal();
  tell($("h2", large)?.textContent || "");
}
function barOfPhoto() {
  const bar = document.createElement("div");
  bar.className = "bar-of-photo";
  for (const [sign, name, act] of [["‹", "Previous photo", () => step(-1)], ["›", "Next photo", () => step(1)], ["×", "Close", leave]]) {
    const button = pressed(sign, act);
    button.setAttribute("aria-label", name);
    button.autofocus = name === "Close";
    bar.append(button);
  }
  return bar;
}
// Back to the grid, at once: the browser tells of a closed dialog only after the next key.
function leave() {
  const from = shown;
  if (!from) return;
  shown = null;
  large.querySelector("video")?.pause();
  large.close();
  quiet();
  $(".picture", wake(from)).focus();
}
// One after the other: a key may be pressed while the next photos still come.
let steps = Promise.resolve();
function step(by) {
  steps = steps.then(() => shown && goOn(by));
  return steps;
}
async function goOn(by) {
  const from = shown, next = await beside(from, by);
  if (shown !== from) return;
  if (!next) return tell(by > 0 ? "This is the last photo." : "This is the first photo.");
  next.scrollIntoView({ block: "nearest" });
  show(next);
}
// The photo so many places on, which may first have to come.
async function beside(tile, by) {
  const at = tiles().indexOf(tile) + by;
  if (at >= tiles().length) await more();
  else if (at >= tiles().length - 6) more();
  return tiles()[at];
}
if (grid) {
  grid.addEventListener("click", (event) => {
    const link = event.target.closest(".picture");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    if (!choosesByTap()) show(link.closest(".tile"));
  });
  large.addEventListener("close", leave);
  large.addEventListener("click", (event) => { if (event.target === large) leave(); });
}
