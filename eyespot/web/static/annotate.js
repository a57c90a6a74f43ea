// The grid of photos to label: one cursor, one key a mark, and a queue that loses nothing the server has not confirmed.
"use strict";

document.getElementById("scriptless").remove();
const work = document.getElementById("work");
const { store, query, who, what } = work.dataset;
const box = document.getElementById("photos");
const zoom = document.getElementById("zoom");
const help = document.getElementById("help");
const PAGE = 120, AHEAD = what === "audit" ? 12 : 48, AT_ONCE = 200, MOST = 500;  // others wait for photos of an audit that one holds
const from = new URLSearchParams(location.search).get("first");
const WORDS = { y: "relevant", n: "not", d: "doubt" };
const KEPT = `eyespot-unsaved ${JSON.stringify([store, who, query])} `;

const photos = [];           // {image, thumbnail, large, mark, element}
const known = new Map();     // image → its place
const past = [];             // batches of [image, the mark before], for undo
const unsaved = stored();    // image → mark, until the server has it
const aside = [];             // what the server says to marks that it refuses
const queued = [];           // keys that wait for photos that are on their way
let here = 0, anchor = null, first = 0, total = 0, grows = false, loading = null, late = false, sending = false;
let begun = performance.now();  // when the page was opened; null once the server knows

const address = (path, more = {}) => `/annotate/${path}?${new URLSearchParams({ query, ...more })}`;
const element = (id) => document.getElementById(id);

async function ask(path, more, init) {
  const answer = await fetch(address(path, more), init);
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(told.detail || `the server answers ${answer.status}`), { status: answer.status });
  return told;
}

// -- photos ---------------------------------------------------------------------------------------------------

function load() {
  loading ??= fetchMore().catch(tell).finally(() => { loading = null; });
  return loading;
}

async function fetchMore() {
  if (what === "likely") return likelier();
  if (grows && first + photos.length >= total) {
    const { new: more } = await ask("grow", { what }, { method: "POST" });
    if (!more && what === "list") standing(await ask("standing"));  // the list is at its end now
  }
  const found = await ask("photos", { what, first: first + photos.length, count: PAGE });
  append(found.photos, found.total, found.grows);
}

// The order changes with every mark, so what is not shown yet may stand anywhere.
async function likelier() {
  for (let place = 0; ; place += MOST) {
    const found = await ask("photos", { what, first: place, count: MOST });
    const fresh = found.photos.filter((one) => !known.has(one.image));
    if (fresh.length || place + MOST >= found.total) return append(fresh.slice(0, PAGE), found.total, false);
  }
}

function append(found, count, more) {
  total = count;
  grows = more;
  const fresh = found.filter((one) => !known.has(one.image));
  for (const one of fresh) {
    known.set(one.image, photos.length);
    one.mark = unsaved.has(one.image) ? unsaved.get(one.image) : one.mark;
    one.element = drawn(one, photos.length);
    photos.push(one);
  }
  box.append(...fresh.map((one) => one.element));
  fresh.forEach(show);
  const over = fresh.length === 0 && (!grows || what === "audit");
  element("end").hidden = !over;
  const all = what === "audit" ? "These are all photos that nobody else holds; what others leave comes back after a while." : "These are all photos.";
  element("end").textContent = photos.length ? all : "There are no photos here.";
  if (fresh.length === 0) grows = false;
}

function drawn(one, place) {
  const shot = document.createElement("div");
  const picture = document.createElement("img");
  const tag = document.createElement("span");
  shot.className = "shot";
  shot.id = `shot-${place}`;
  shot.setAttribute("role", "option");
  picture.loading = "lazy";
  picture.src = one.thumbnail;
  picture.alt = "";
  tag.className = "tag";
  shot.append(picture, tag);
  shot.addEventListener("click", (event) => { event.shiftKey ? stretch(place) : go(place); box.focus({ preventScroll: true }); });
  shot.addEventListener("dblclick", () => toggle(zoom));
  return shot;
}

function show(one) {
  const place = known.get(one.image);
  one.element.dataset.mark = one.mark || "";
  one.element.querySelector(".tag").textContent = WORDS[one.mark] || "";
  one.element.classList.toggle("unsaved", unsaved.has(one.image));
  one.element.setAttribute("aria-label", `Photo ${first + place + 1}, ${WORDS[one.mark] || "no mark"}`);
  if (place === here && zoom.open) zoom.dataset.mark = one.mark || "";
}

// -- where one is ---------------------------------------------------------------------------------------------

const range = () => (anchor === null ? [here, here] : [Math.min(anchor, here), Math.max(anchor, here)]);

function select() {
  const [from, to] = range();
  for (const chosen of box.querySelectorAll("[aria-selected=true]")) chosen.setAttribute("aria-selected", "false");
  box.querySelector(".here")?.classList.remove("here");
  for (let place = from; place <= to; place += 1) photos[place]?.element.setAttribute("aria-selected", "true");
  const one = photos[here];
  if (!one) return;
  one.element.classList.add("here");
  one.element.scrollIntoView({ block: "nearest" });
  box.setAttribute("aria-activedescendant", one.element.id);
  if (zoom.open) enlarge(one);
  if (here > photos.length - AHEAD) load();
}

function go(place) {
  anchor = null;
  here = Math.max(0, Math.min(place, photos.length - 1));
  select();
}

function stretch(place) {
  anchor ??= here;
  here = Math.max(0, Math.min(place, photos.length - 1));
  select();
}

function across() {
  const top = photos[0]?.element.offsetTop;
  const next = photos.findIndex((one) => one.element.offsetTop !== top);
  return next < 1 ? Math.max(photos.length, 1) : next;
}

async function toUnmarked() {
  for (let place = here + 1; ; place += 1) {
    if (place >= photos.length) {
      const before = photos.length;
      await load();
      if (photos.length === before) return;
    }
    if (!photos[place].mark) return go(place);
  }
}

function enlarge(one) {
  element("large").src = one.large;
  element("large").alt = `Photo ${first + here + 1}`;
  element("place").textContent = `Photo ${first + here + 1}: ${WORDS[one.mark] || "no mark"}`;
  zoom.dataset.mark = one.mark || "";
}

function toggle(dialog) {
  if (dialog.open) { dialog.close(); box.focus({ preventScroll: true }); return; }
  dialog.showModal();
  if (dialog === zoom) select();
}

// -- marks ----------------------------------------------------------------------------------------------------

function mark(value) {
  const [from, to] = range();
  put(photos.slice(from, to + 1), value);
  if (value === null) return;
  go(to + 1);
  if (to + 1 >= photos.length && (loading || grows || first + photos.length < total)) waitFor(to + 1);
}

// Whoever is faster than the photos come has seen none of them: keys wait, so that none falls on the photo before.
async function waitFor(place) {
  late = true;
  await load();
  late = false;
  const there = place < photos.length;
  if (there) go(place);
  while (queued.length && !late) {
    const [key, act] = queued.shift();
    if (there || !(key in WORDS)) act();  // there is no photo for that mark
  }
}

function put(some, value) {
  const changed = some.filter((one) => one.mark !== value);
  if (!changed.length) return;
  past.push(changed.map((one) => [one.image, one.mark]));
  for (const one of changed) set(one, value);
  say(changed.length > 1 ? `${changed.length} photos ${WORDS[value] || "without a mark"}` : `${first + known.get(changed[0].image) + 1} ${WORDS[value] || "without a mark"}`);
  keep();
}

function set(one, value) {
  one.mark = value;
  unsaved.set(one.image, value);
  localStorage.setItem(KEPT + one.image, JSON.stringify(value));
  show(one);
}

function undo() {
  const batch = past.pop();
  if (!batch) return say("There is nothing to take back");
  for (const [image, before] of batch) set(photos[known.get(image)], before);
  go(known.get(batch[0][0]));
  say("Taken back");
  keep();
}

const say = (text) => { element("told").textContent = text; };

// -- saving ---------------------------------------------------------------------------------------------------

// Every mark has a place of its own in the browser, so no tab writes over what another one keeps.
function stored() {
  const mine = Object.entries(localStorage).filter(([place]) => place.startsWith(KEPT));
  return new Map(mine.map(([place, value]) => [place.slice(KEPT.length), JSON.parse(value)]));
}

function forget(image, value) {
  if (localStorage.getItem(KEPT + image) === JSON.stringify(value)) localStorage.removeItem(KEPT + image);
}

function keep() {
  tally();
  if (unsaved.size && !sending) send();
}

function tally() {
  element("saving").textContent = unsaved.size ? `${unsaved.size} not saved yet` : "All saved";
}

// What another tab says later of a photo counts here too, or this one would send its older mark behind it.
addEventListener("storage", ({ key, newValue }) => {
  const image = key?.startsWith(KEPT) ? key.slice(KEPT.length) : null;
  if (newValue === null || !unsaved.has(image)) return;
  unsaved.set(image, JSON.parse(newValue));
  const one = photos[known.get(image)];
  if (one) show(Object.assign(one, { mark: unsaved.get(image) }));
});

async function send() {
  sending = true;
  for (let wait = 250; unsaved.size; ) {
    try {
      await deliver([...unsaved].slice(0, AT_ONCE));
      wait = 250;
      tell(null);
    } catch (error) {
      tell(error);
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(2 * wait, 4000);
    }
  }
  sending = false;
}

// Photos of no list (409) are found half by half and hold the others up no longer; whatever else is wrong may pass.
async function deliver(batch) {
  // The time of the first marks begins where the page was opened.
  const opened = begun === null ? undefined : (performance.now() - begun) / 1000;
  const body = JSON.stringify({ marks: Object.fromEntries(batch), opened });
  try {
    const told = await ask("marks", {}, { method: "POST", body, headers: { "Content-Type": "application/json" } });
    begun = null;
    confirmed(batch);
    standing(told);
  } catch (error) {
    if (error.status !== 409) throw error;
    if (batch.length === 1) return setAside(batch, error);
    const half = Math.ceil(batch.length / 2);
    await deliver(batch.slice(0, half));
    await deliver(batch.slice(half));
  }
}

function setAside(batch, error) {
  aside.push(error.message);
  confirmed(batch);
}

function confirmed(batch) {
  for (const [image, value] of batch) {
    forget(image, value);
    if (unsaved.get(image) !== value) continue;  // changed again meanwhile: that one is still to be saved
    unsaved.delete(image);
    if (known.has(image)) show(photos[known.get(image)]);
  }
  tally();
}

function tell(error) {
  const wrong = element("wrong");
  const kept = unsaved.size ? `; ${unsaved.size} marks are kept in this browser and sent again` : "";
  const failed = error ? `${error.status ? error.message : "The server cannot be reached"}${kept}. ` : "";
  const refused = aside.length ? `${aside.length} marks from before were set aside, for the server refuses them: ${aside.at(-1)}.` : "";
  wrong.hidden = !failed && !refused;
  wrong.textContent = failed + refused;
}

addEventListener("beforeunload", (event) => { if (unsaved.size) event.preventDefault(); });

// -- how it stands --------------------------------------------------------------------------------------------

function standing(told) {
  const { descent, audit } = told;
  element("relevant").textContent = told.relevant;
  element("labelled").textContent = told.labelled;
  element("in-a-row").textContent = Math.min(descent.in_a_row, told.in_a_row);
  element("barren").value = descent.in_a_row;
  const stop = element("stop");
  stop.hidden = !told.stopped;
  stop.textContent = descent.stopped_at ? `stopped at ${descent.stopped_at}` : "the end of the list";
  const running = audit && audit.done < audit.size;
  const { joinable } = told;
  element("joining").hidden = !joinable;
  if (joinable) element("joinable").textContent = `${joinable.people.join(", ")} audits the rest: ${joinable.done} of ${joinable.size} photos labelled.`;
  element("drawing").hidden = joinable || !told.stopped || running || (audit && what === "audit") || (!told.grows && descent.depth >= told.listed);
  element("left").textContent = left(told);
  element("interval").textContent = audit?.left ? `(${audit.left.low} to ${audit.left.high}, 95 %; cautiously at most ${audit.cautious.high})${found(told)}` : "";
}

// Rounded down, for a share of "at least".
function found({ found_at_least: share, found_by_rank: byRank }) {
  const percent = (number) => `${Math.floor(100 * number)} %`;
  const byDepth = byRank === null ? "" : `; at least ${percent(byRank)} if each doubling of the depth hides no more than the one before`;
  return ` · at least ${percent(share)} found${byDepth}`;
}

function left({ audit, listed, descent, grows: more }) {
  if (audit?.left) return `about ${Math.round(audit.left.expected)}`;
  if (audit) return `audit ${audit.done} of ${audit.size}${audit.people.length ? ` by ${audit.people.length}` : ""}`;
  return !more && listed && descent.depth >= listed ? "none" : "not audited";
}

async function draw(button, path, more) {
  button.disabled = true;
  try {
    await ask(path, more, { method: "POST" });
    location.href = address("label", { what: "audit" });
  } catch (error) {
    button.disabled = false;
    tell(error);
  }
}

// -- keys -----------------------------------------------------------------------------------------------------

const ACTIONS = {
  y: () => mark("y"), n: () => mark("n"), d: () => mark("d"), Delete: () => mark(null), Backspace: () => mark(null),
  x: () => put(photos.slice(0, range()[1] + 1).filter((one) => !one.mark), "n"),
  u: undo, m: toUnmarked, z: () => toggle(zoom), " ": () => toggle(zoom), "?": () => toggle(help),
  Home: () => go(0), End: () => go(photos.length - 1),
};
const MOVES = { ArrowLeft: () => -1, ArrowRight: () => 1, ArrowUp: () => -across(), ArrowDown: across };
const REPEATED = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select") || (event.key === " " && event.target.closest("button, a, summary"))) return;
  if (event.repeat && event.key === "Enter") event.preventDefault();  // on a button it would click on and on
  if (event.repeat && !REPEATED.has(event.key)) return;  // a key held down has looked at nothing
  if (help.open && event.key !== "?") return;  // what is behind it is not looked at
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const move = MOVES[key];
  if (!move && !ACTIONS[key]) return;
  event.preventDefault();
  const act = () => (!move ? ACTIONS[key]() : (event.shiftKey ? stretch : go)(here + move()));
  if (late) queued.push([key, act]);
  else act();
});

for (const button of document.querySelectorAll("[data-key]")) button.addEventListener("click", () => ACTIONS[button.dataset.key]());
element("audit").addEventListener("click", ({ currentTarget }) => {
  if (element("size").reportValidity()) draw(currentTarget, "audit", { size: element("size").value, twice: element("twice").checked ? 0.1 : 0 });
});
element("join").addEventListener("click", ({ currentTarget }) => draw(currentTarget, "audit/join"));

async function begin() {
  tally();
  const told = await ask("standing", {});
  standing(told);
  const depth = what === "list" ? told.descent.depth : 0;
  first = from === null ? Math.max(0, depth - 24) : Number(from) || 0;
  element("earlier").hidden = first === 0;
  element("earlier").querySelector("a").href = address("label", { what, first: 0 });
  await load();
  if (what === "audit" && photos.every((one) => one.mark)) await load();  // further photos of it
  const open = photos.findIndex((one) => !one.mark);
  go(open < 0 ? 0 : open);
  box.focus({ preventScroll: true });
  keep();
}

begin().catch(tell);
