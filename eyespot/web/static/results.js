// The result in place: filters that act on a tick, the size of the photos, groups that open. It uses what search.js defines.
"use strict";
{ // names of its own: all scripts of a page share theirs

// -- filters: a tick brings the page that its address would, and only what differs is replaced
const side = $(".filters"), found = $(".found"), MOVED = "results-changed"; // the event after another result has come
const busy = { abort: null };

function addressOfForm() {
  const given = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (typeof value === "string" && value.trim()) given.append(name, value);
  return given.size ? `/?${given}` : "/";
}
async function goTo(address, { push = true, place = false } = {}) {
  busy.abort?.abort();
  const mine = busy.abort = new AbortController();
  grid.setAttribute("aria-busy", "true");
  const answer = await fetch(address, { headers: { Accept: "text/html" }, signal: mine.signal }).catch(() => null);
  if (mine.signal.aborted) return;
  const text = answer?.headers.get("content-type")?.startsWith("text/html") && !answer.redirected ? await answer.text().catch(() => null) : null;
  if (mine.signal.aborted) return;
  grid.removeAttribute("aria-busy");
  if (answer && text === null) { location.assign(address); return; }
  if (!answer) { complain(`The filter was not applied: ${UNREACHED}.`, () => goTo(address, { push, place })); return; }
  quiet();
  if (push) { keepPlace(); history.pushState({}, "", address); }
  lay(new DOMParser().parseFromString(text, "text/html"));
  document.dispatchEvent(new CustomEvent(MOVED));
  if (place) await comeBack(true);
  else if (found.getBoundingClientRect().top < 0) found.scrollIntoView();
  tell($("#total") ? `${quantity(Number($("#total").textContent.replaceAll(",", "")), "photo")}.` : $(".problem", found)?.textContent.trim() || "");
}
function lay(fresh) {
  if (large.open) leave();
  document.title = fresh.title;
  const photos = $("#grid", fresh);
  Object.assign(grid.dataset, photos.dataset);
  grid.replaceChildren(...photos.childNodes);
  photos.replaceWith(document.createComment("grid"));
  const parts = [...$(".found", fresh).childNodes];
  found.replaceChildren(...parts.map((one) => (one.nodeType === Node.COMMENT_NODE && one.data === "grid" ? grid : one)));
  layFilters(fresh);
  $("#q").value = $("#q").dataset.was = $("#q", fresh).value;
  for (const one of form.querySelectorAll("input[type=hidden], .chips")) one.remove();
  form.append(...$("#search", fresh).querySelectorAll("input[type=hidden], .chips"));
  window.htmx?.process(found);
}
// What is open, typed and in focus stays as it is.
function layFilters(fresh) {
  const box = $("#filters"), open = new Map([...box.querySelectorAll("details")].map((one) => [keyOf(one), one.open]));
  const typed = new Map([...box.querySelectorAll(".seek")].filter((one) => one.value).map((one) => [one.closest(".unit").dataset.unit, one.value]));
  const here = document.activeElement, at = side.scrollTop;
  const again = box.contains(here) && here.name ? `[name="${here.name}"]${here.type === "checkbox" ? `[value="${CSS.escape(here.value)}"]` : ""}` : null;
  const written = here?.matches("#filters input:not([type=checkbox]), #filters textarea") ? here.value : null;
  box.replaceChildren(...$("#filters", fresh).childNodes);
  $("#show-filters").replaceChildren(...$("#show-filters", fresh).childNodes);
  for (const one of box.querySelectorAll("details")) {
    if (!open.has(keyOf(one)) || one.open) continue;
    one.open = open.get(keyOf(one));
    if (one.open && one.dataset.under && !$("ul", one)) openTaxon(one);
  }
  prepareFilters();
  for (const [unit, text] of typed) {
    const seek = $(`[data-unit="${CSS.escape(unit)}"] .seek`, box);
    if (seek) { seek.value = text; seekIn(seek); }
  }
  side.scrollTop = at;
  const same = again && $(again, box);
  if (same) same.focus({ preventScroll: true });
  if (same && written !== null && same.value !== written) same.value = written;
}
const keyOf = (one) => one.dataset.key || one.dataset.under || one.parentElement?.querySelector("input")?.value;
function prepareFilters() {
  const apply = $("#apply");
  if (apply) apply.hidden = true; // a tick acts by itself
  for (const seek of side.querySelectorAll(".seek")) seek.hidden = false;
  for (const one of side.querySelectorAll(".taxon")) one.addEventListener("toggle", () => { if (one.open) openTaxon(one); });
  showTaken();
  drawMap();
}
// Under a taxon that is ticked all are taken; a tick there narrows it down.
function showTaken() {
  for (const one of side.querySelectorAll(".unit li")) {
    const above = one.parentElement.closest("li");
    one.classList.toggle("taken", Boolean(above && ($(":scope > .tick input", above)?.checked || above.classList.contains("taken"))));
    const own = $(":scope > .tick input", one);
    if (own) own.indeterminate = !own.checked && Boolean($(":scope ul input:checked", one));
  }
}
function narrow(input) {
  if (!input.checked || !input.closest(".unit")?.querySelector(".taxon")) return;
  const item = input.closest("li");
  for (const below of item.querySelectorAll(":scope ul input:checked")) below.checked = false;
  for (let above = item.parentElement.closest("li"); above; above = above.parentElement.closest("li")) $(":scope > .tick input", above).checked = false;
}
const valuesOf = (unit, more) => {
  const given = new URLSearchParams(location.search);
  for (const one of ["cursor", "rank"]) given.delete(one);
  for (const [name, value] of Object.entries({ unit, ...more })) given.set(name, value);
  return fetch(`/values?${given}`).then((answer) => (answer.ok ? answer.text() : null)).catch(() => null);
};
async function openTaxon(one) {
  if (!one.dataset.under || $("ul", one)) return;
  const list = document.createElement("ul");
  list.className = "values";
  one.append(list);
  const text = await valuesOf(one.closest(".unit").dataset.unit, { under: one.dataset.under });
  if (text === null) return list.remove();
  list.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
  for (const under of list.querySelectorAll(".taxon")) under.addEventListener("toggle", () => { if (under.open) openTaxon(under); });
  showTaken();
}
async function seekIn(seek) {
  const unit = seek.closest(".unit"), text = seek.value.trim();
  let list = $(".sought", unit);
  for (const one of unit.querySelectorAll(":scope > .values, :scope > .rest")) if (one !== list) one.hidden = Boolean(text);
  if (!text) return list?.remove();
  const answer = await valuesOf(unit.dataset.unit, { contains: text });
  if (answer === null || seek.value.trim() !== text) return null;
  list = $(".sought", unit) || document.createElement("ul");
  list.className = "values sought";
  list.replaceChildren(...new DOMParser().parseFromString(answer, "text/html").body.childNodes);
  seek.after(list);
  return showTaken();
}
if (side && found && grid) {
  let soon = 0;
  side.addEventListener("change", (event) => {
    if (event.target.matches(".seek") || event.target.form !== form) return;
    // The same value may stand twice, found and in its list.
    for (const twin of side.querySelectorAll("input[type=checkbox]")) if (twin !== event.target && twin.name === event.target.name && twin.value === event.target.value) twin.checked = event.target.checked;
    narrow(event.target);
    showTaken();
    goTo(addressOfForm());
  });
  side.addEventListener("input", (event) => {
    if (!event.target.matches(".seek")) return;
    clearTimeout(soon);
    soon = setTimeout(() => seekIn(event.target), 150);
  });
  side.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.matches(".seek")) event.preventDefault(); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-go]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    goTo(link.getAttribute("href"));
  });
  document.addEventListener("map-chosen", () => goTo(addressOfForm()));
  let showing = location.pathname + location.search;
  document.addEventListener(MOVED, () => { showing = location.pathname + location.search; sizeUp(); });
  addEventListener("popstate", () => { if (location.pathname + location.search !== showing) goTo(location.href, { push: false, place: true }); });
  prepareFilters();
}

// -- the size of the photos, remembered here and not in the address
const SIZE = "eyespot-size", ROOMY = 176; // pixels, from which on words stand below a photo
function sizeUp() {
  const slider = $("#size"), known = Number(localStorage.getItem(SIZE));
  if (!slider) return;
  slider.closest("label").hidden = false;
  slider.value = known || parseFloat(getComputedStyle(document.documentElement).fontSize) * 5.5;
  if (known) enlarge(known);
  slider.addEventListener("input", () => {
    const top = tiles().find((one) => one.getBoundingClientRect().bottom > 80), was = top?.getBoundingClientRect().top;
    enlarge(Number(slider.value));
    if (scrollY && top) scrollBy(0, top.getBoundingClientRect().top - was);
    localStorage.setItem(SIZE, slider.value);
  });
}
function enlarge(pixels) {
  grid.style.setProperty("--row", `${pixels}px`);
  grid.classList.toggle("roomy", pixels >= ROOMY);
}
if (grid?.classList.contains("justified")) sizeUp();

// -- thousands of photos: full rows are put together in blocks, and of a block that is far from the screen only its height
// is left on the page. So scrolling, keys and memory need what the screen needs, however many photos there are.
const MANY = 240, BLOCK = 60; // photos, from how many on there are blocks, and how many a block has at least
const near = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) if (isIntersecting) wakeBlock(target); else sleepBlock(target);
}, { rootMargin: "75% 0px" });
function sleepBlock(block) {
  if (block.classList.contains("far") || block.contains(document.activeElement) || !block.isConnected) return;
  block.style.height = `${block.getBoundingClientRect().height}px`;
  block.classList.add("far");
  for (const one of block.querySelectorAll(".tile")) sleep(one);
}
function fold() {
  const flat = [...grid.children].filter((one) => one.matches(".tile"));
  if (flat.length < (grid.classList.contains("many") ? 2 * BLOCK : MANY)) return;
  grid.classList.add("many");
  const tops = flat.map((one) => one.getBoundingClientRect().top);
  for (let from = 0, to = BLOCK; to + BLOCK < flat.length; to += 1) {
    if (tops[to] === tops[to - 1] || to - from < BLOCK) continue;
    const block = document.createElement("li"), rows = document.createElement("ol");
    block.className = "block";
    block.append(rows);
    flat[from].before(block);
    rows.append(...flat.slice(from, to));
    near.observe(block);
    from = to;
  }
}
// Rows of another width or height begin with other photos.
function foldAgain() {
  const blocks = all("#grid > .block");
  for (const block of blocks) {
    wakeBlock(block);
    near.unobserve(block);
    block.replaceWith(...block.firstChild.children);
  }
  if (blocks.length) fold();
}
if (grid?.classList.contains("justified")) {
  let width = grid.clientWidth, soon = 0;
  const foldSoon = () => { clearTimeout(soon); soon = setTimeout(foldAgain, 150); };
  new MutationObserver(fold).observe(grid, { childList: true });
  new ResizeObserver(() => { if (grid.clientWidth !== width) { width = grid.clientWidth; foldSoon(); } }).observe(grid);
  $("#size")?.addEventListener("input", foldSoon);
  matchMedia("print").addEventListener("change", ({ matches }) => { if (matches) all("#grid > .block").forEach(wakeBlock); });
}

// -- a group of copies or a burst: its number opens it in place
grid?.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-act=alike]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const tile = link.closest(".tile");
  if (link.getAttribute("aria-expanded") === "true") {
    link.setAttribute("aria-expanded", "false");
    while (tile.nextElementSibling?.matches(".member")) tile.nextElementSibling.remove();
    return;
  }
  const answer = await ask(link.href, { headers: { "HX-Request": "true" } }, (why) => complain(`The photos that are alike did not come: ${why}.`));
  if (!answer) return;
  const others = [...new DOMParser().parseFromString(await answer.text(), "text/html").querySelectorAll(".tile")];
  tile.after(...others.filter((one) => one.dataset.id !== tile.dataset.id));
  link.setAttribute("aria-expanded", "true");
});
}
