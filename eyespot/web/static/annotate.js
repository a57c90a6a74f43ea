// The grid of photos to label: one cursor, one key a mark, and a queue that loses nothing the server has not confirmed.
"use strict";

document.getElementById("scriptless").remove();
const work = document.getElementById("work");
const { store, query, who, what } = work.dataset;
const box = document.getElementById("photos");
const zoom = document.getElementById("zoom");
const help = document.getElementById("help");
const HANDED = what === "audit" || what === "team";  // photos come a few at a time, and nobody else has them meanwhile
const PAGE = 120, AHEAD = HANDED ? 12 : 48, MOST = 500;
const from = new URLSearchParams(location.search).get("first");
const WORDS = { y: "yes", n: "no", d: "unsure" };
const KEPT = `eyespot-unsaved ${JSON.stringify([store, who, query])} `;

// A tile is a photo with those behind it: {image, thumbnail, large, mark, byGroup, flags, number, element, members}.
const photos = [];           // the tiles
const known = new Map();     // image → the place of its tile
const heads = new Map();     // group and mark → its tile
const past = [];             // batches of [image, the mark before, whether that was the group's], for undo
const waiting = new Waiting({ place: KEPT, post: deliver, refuses: (status) => status === 409, confirmed, aside: (_, error) => aside.push(error.message), failed: tell });
const unsaved = waiting.marks;  // image → mark until the server has it, in capitals where it is that of a group
const aside = [];             // what the server says to marks that it refuses
const queued = [];           // keys that wait for photos that are on their way
let here = 0, anchor = null, first = 0, loaded = 0, total = 0, sized = false, grows = false, loading = null;
let deliveries = 0;   // how often marks came to the server
let late = false;     // keys wait until it is known which photo is next
let beyond = false;   // the last photo has its mark, and the next mark is for a photo that is not there yet
let unused = 0;       // marks without a photo since the cursor moved last
let failed = null;    // why the photos that were wanted last did not come
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
  failed = loading ? failed : null;
  loading ??= fetchMore().catch((error) => { failed = error; tell(error); }).finally(() => { loading = null; });
  return loading;
}

async function fetchMore() {
  if (what === "likely" || what === "telling") return likelier();
  const more = { what, first: first + loaded, count: PAGE };
  if (grows && first + loaded >= total) {
    const { new: fresh } = await ask("grow", { what }, { method: "POST" });
    if (!fresh && what !== "audit") latestStanding().catch(tell);  // the list may be at its end now
    // Photos that others left come back anywhere in a shared list
    if (what === "team") Object.assign(more, { first: 0, count: MOST, unmarked: true });
  }
  const found = await ask("photos", more);
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
  const fresh = found.filter((one) => !known.has(one.image)), tiles = new Set();
  for (const one of fresh) tiles.add(placed(one));
  loaded += found.length;
  box.append(...[...tiles].map((one) => one.element).filter((shot) => !shot.isConnected));
  tiles.forEach(show);
  const over = fresh.length === 0 && (!grows || HANDED);
  element("end").hidden = !over;
  const all = HANDED ? "These are all photos that nobody else holds; what others leave comes back after a while." : "These are all photos.";
  element("end").textContent = photos.length ? all : "There are no photos here.";
  if (over && HANDED && !photos.some(isOpen) && element("onward").hidden) onward("Nothing more for you here for now.");
  if (fresh.length === 0) grows = false;
}

// The tile on which a photo is shown: that of its group while all of it is marked alike, else one of its own.
function placed(one) {
  const later = unsaved.has(one.image) ? unsaved.get(one.image) : undefined;
  Object.assign(one, { members: [], number: first + known.size + 1, byGroup: one.by_group });
  if (later !== undefined) Object.assign(one, decoded(later));
  const key = `${one.group} ${one.mark}`;
  const head = one.group === null ? undefined : heads.get(key);
  if (head && !head.siblings && items(head).every((other) => other.mark === one.mark)) {
    head.members.push(one);
    known.set(one.image, known.get(head.image));
    return head;
  }
  if (one.group !== null) heads.set(key, one);
  known.set(one.image, photos.length);
  one.element = drawn(one, photos.length);
  photos.push(one);
  return one;
}

const items = (tile) => [tile, ...tile.members];
const itemOf = (image) => known.has(image) && items(photos[known.get(image)]).find((one) => one.image === image);
const isOpen = (tile) => items(tile).some((one) => !one.mark);
const decoded = (value) => ({ mark: value && value.toLowerCase(), byGroup: Boolean(value) && value !== value.toLowerCase() });

function drawn(one, place) {
  const shot = document.createElement("div");
  const picture = document.createElement("img");
  const [tag, count, flag] = ["tag", "count", "flag"].map((name) => Object.assign(document.createElement("span"), { className: name }));
  shot.className = "shot";
  shot.id = `shot-${place}`;
  shot.setAttribute("role", "option");
  picture.loading = "lazy";
  picture.src = one.thumbnail;
  picture.alt = `Photo ${one.number}`;
  shot.append(picture, tag, count, flag);
  shot.addEventListener("click", (event) => { const at = known.get(one.image); event.shiftKey ? stretch(at) : go(at); box.focus({ preventScroll: true }); });
  shot.addEventListener("dblclick", () => toggle(zoom));
  return shot;
}

function wordsOf(tile) {
  const marks = new Set(items(tile).map((one) => one.mark));
  if (marks.size === 1) return WORDS[tile.mark] || "";
  return `${items(tile).filter((one) => one.mark === "y").length} yes of ${tile.members.length + 1}`;
}

function show(one) {
  const place = known.get(one.image), tile = photos[place], shot = tile.element, words = wordsOf(tile);
  const size = tile.members.length + 1;
  shot.dataset.mark = items(tile).every((other) => other.mark === tile.mark) ? tile.mark || "" : "";
  shot.querySelector(".tag").textContent = words;
  shot.querySelector(".count").textContent = size > 1 ? `× ${size}` : "";
  shot.querySelector(".flag").textContent = tile.flags.length ? `⚑ ${tile.flags.join(", ")}` : "";
  shot.classList.toggle("stack", size > 1);
  shot.classList.toggle("member", Boolean(tile.head || tile.siblings));
  shot.classList.toggle("unsaved", items(tile).some((other) => unsaved.has(other.image)));
  const more = [size > 1 ? `, a group of ${size}` : "", ...tile.flags.map((flag) => `, flagged: ${flag}`)].join("");
  shot.setAttribute("aria-label", `Photo ${tile.number}, ${words || "no mark"}${more}`);
  if (place === here && zoom.open) zoom.dataset.mark = tile.mark || "";
}

// -- groups ---------------------------------------------------------------------------------------------------

function openOrClose() {
  const one = photos[here], head = one?.head || (one?.siblings ? one : null);
  if (head) closeGroup(head);
  else if (one?.members.length) openGroup(one);
  else return notice("This photo is in no group");
  photos.forEach((tile, place) => {
    for (const item of items(tile)) known.set(item.image, place);
    tile.element.id = `shot-${place}`;
  });
  const tile = head || one;
  items(tile).concat(tile.siblings || []).forEach(show);
  go(known.get(tile.image));
  say(head ? "Group closed" : `Group of ${tile.siblings.length + 1} open`);
}

function openGroup(tile) {
  const place = known.get(tile.image);
  [tile.siblings, tile.members] = [tile.members, []];
  for (const one of tile.siblings) Object.assign(one, { head: tile, element: drawn(one, 0) });
  photos.splice(place + 1, 0, ...tile.siblings);
  tile.element.after(...tile.siblings.map((one) => one.element));
}

function closeGroup(head) {
  for (const one of head.siblings) {
    one.element.remove();
    one.head = null;
  }
  photos.splice(photos.indexOf(head) + 1, head.siblings.length);
  [head.members, head.siblings] = [head.siblings, null];
}

function flag() {
  const one = photos[here];
  if (one) flagPhoto(one.image, (flags) => { one.flags = flags; show(one); say(flags.length ? `Flagged: ${flags.join(", ")}` : "No flag"); });
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
  beyond = false;
  unused = 0;
  here = Math.max(0, Math.min(place, photos.length - 1));
  select();
}

function stretch(place) {
  anchor ??= here;
  beyond = false;
  here = Math.max(0, Math.min(place, photos.length - 1));
  select();
}

function across() {
  const top = photos[0]?.element.offsetTop;
  const next = photos.findIndex((one) => one.element.offsetTop !== top);
  return next < 1 ? Math.max(photos.length, 1) : next;
}

// Whether there is a tile at a place; photos that come may all lie behind tiles that are there.
async function reach(place) {
  for (let before = -1; place >= photos.length && before < known.size;) {
    before = known.size;
    await load();
  }
  return place < photos.length;
}

const toUnmarked = () => goWhen(async () => {
  for (let place = here + 1; await reach(place); place += 1) if (isOpen(photos[place])) return place;
  return null;
}, "There is no unmarked photo below");

// Whoever is faster than the photos come has seen none of them: keys wait, so that none falls on the photo before.
async function goWhen(coming, none = "") {
  late = true;
  if (HANDED) grows = true;  // what others left may have come back
  const place = await coming();
  late = false;
  if (place !== null) go(place);
  while (queued.length && !late) {
    const [key, act] = queued.shift();
    if (place !== null || !(key in MARKED)) act();
    else unused += 1;  // there is no photo for that mark
  }
  if (late) tellWaiting();
  else notice(place === null ? refusal() || none : "");
}

function refusal() {
  if (!unused) return "";
  const why = failed ? `The next photos do not come (${failed.status ? failed.message : "the server cannot be reached"})` : "There are no more photos for you here";
  return `${why}: ${quantity(unused, "key was", "keys were")} not used`;
}

const tellWaiting = () => notice(queued.length ? `${quantity(queued.length, "key waits", "keys wait")} for the next photos` : "");

function enlarge(one) {
  const why = element("reasons").querySelector("a");
  if (element("large").getAttribute("src") !== one.large) {
    for (const old of zoom.querySelectorAll(".why > :not(a), .heat")) old.remove();
    why.setAttribute("aria-expanded", "false");
  }
  why.href = `/why/${encodeURIComponent(one.image)}?${why.dataset.query}`;
  element("large").src = one.large;
  showFacts(one);
  const more = [one.members.length ? `, and ${one.members.length} like it` : "", ...one.flags.map((flag) => ` · ⚑ ${flag}`)].join("");
  element("place").textContent = `Photo ${one.number}: ${wordsOf(one) || "no mark"}${more}`;
  zoom.dataset.mark = one.mark || "";
}

// What is known of the photo, unless it is to be labelled blind; the choice is remembered in this browser.
const SEEN = "eyespot-facts-hidden", SAYS = ["title", "taken", "latitude", "longitude", "path"];
const blind = () => localStorage.getItem(SEEN) === "yes";
async function showFacts(one) {
  element("with-facts").setAttribute("aria-pressed", String(!blind()));
  element("reasons").hidden = blind();
  element("facts").textContent = "";
  element("large").alt = `Photo ${one.number}, ${wordsOf(one) || "no mark"}`;
  if (blind()) return;
  one.facts ??= fetch(`/v1/items/${encodeURIComponent(one.image)}`).then((answer) => (answer.ok ? answer.json() : {})).catch(() => ({}));
  const known = await one.facts, labels = Object.entries(known).filter(([name, value]) => typeof value === "string" && value.length < 60 && !["id", "thumbnail", "licence", "source", "taken_from", "position_from", "date_changed", ...SAYS].includes(name));
  const words = [...SAYS.map((name) => known[name]).filter((value) => value !== null && value !== undefined).map((value) => (typeof value === "number" ? value.toFixed(5) : value.replace("T", " "))), ...labels.map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`)];
  if (photos[here] !== one || blind()) return;
  element("facts").textContent = words.join(" · ");
  element("large").alt = `Photo ${one.number}, ${words.filter((word) => word !== known.path).join(", ") || "nothing is known of it"}, ${wordsOf(one) || "no mark"}`;
}
element("with-facts").addEventListener("click", () => {
  if (blind()) localStorage.removeItem(SEEN);
  else localStorage.setItem(SEEN, "yes");
  if (photos[here]) showFacts(photos[here]);
});

function toggle(dialog) {
  if (dialog.open) { dialog.close(); box.focus({ preventScroll: true }); return; }
  dialog.showModal();
  if (dialog === zoom) select();
}

// -- marks ----------------------------------------------------------------------------------------------------

function mark(value) {
  const [from, to] = range();
  if (beyond && value !== null) queued.push([value, () => mark(value)]);
  else put(photos.slice(from, to + 1).flatMap(items), value);
  if (value === null) return;
  if (!beyond) go(to + 1);
  if (!beyond && to + 1 < photos.length) return;
  beyond = true;
  goWhen(async () => (await reach(to + 1) ? to + 1 : null));
}

function put(some, value) {
  const changed = some.filter((one) => one.mark !== value);
  if (!changed.length) return;
  past.push(changed.map((one) => [one.image, one.mark, one.byGroup]));
  // Photos behind a tile get the mark of their group
  for (const one of changed) set(one, value, value !== null && photos[known.get(one.image)] !== one);
  say(changed.length > 1 ? `${quantity(changed.length, "photo")} ${WORDS[value] || "without a mark"}` : `${changed[0].number} ${WORDS[value] || "without a mark"}`);
  keep();
}

function set(one, value, byGroup) {
  Object.assign(one, { mark: value, byGroup });
  const coded = byGroup ? value.toUpperCase() : value;
  waiting.put(one.image, coded);
  show(one);
}

function undo() {
  const batch = past.pop();
  if (!batch) return notice("There is nothing to take back");
  for (const [image, before, byGroup] of batch) set(itemOf(image), before, byGroup);
  go(known.get(batch[0][0]));
  say(batch.length > 1 ? `${quantity(batch.length, "mark")} taken back` : "Taken back");
  keep();
}

const say = (text) => { element("told").textContent = text; };

// What everybody is to see beside the keys, above an open dialog too.
function notice(text) {
  const note = element("note");
  if (note.textContent === text) return;
  note.hidePopover?.();
  note.textContent = text;
  if (!text) return;
  note.showPopover?.();
  say(text);
}

// -- saving ---------------------------------------------------------------------------------------------------

function keep() {
  tally();
  waiting.send();
}

function tally() {
  element("saving").textContent = unsaved.size ? `${unsaved.size} not saved yet` : "All saved";
}

addEventListener("storage", ({ key }) => {
  const one = key?.startsWith(KEPT) && unsaved.has(key.slice(KEPT.length)) ? itemOf(key.slice(KEPT.length)) : null;
  if (one) show(Object.assign(one, decoded(unsaved.get(one.image))));
});

async function deliver(batch) {
  // The time of the first marks begins where the page was opened.
  const opened = begun === null ? undefined : (performance.now() - begun) / 1000;
  const marks = Object.fromEntries(batch.map(([image, value]) => [image, decoded(value).mark]));
  const by_group = batch.filter(([, value]) => decoded(value).byGroup).map(([image]) => image);
  const body = JSON.stringify({ marks, by_group, opened, what });
  const told = await ask("marks", {}, { method: "POST", body, headers: { "Content-Type": "application/json" } });
  begun = null;
  deliveries += 1;
  return told;
}

function confirmed(batch, told) {
  for (const [image] of batch) if (known.has(image)) show(itemOf(image));
  tally();
  if (told) standing(told);
}

function tell(error) {
  const wrong = element("wrong");
  const kept = unsaved.size ? `; ${quantity(unsaved.size, "mark is", "marks are")} kept in this browser and sent again` : "";
  const failed = error ? `${error.status ? error.message : "The server cannot be reached"}${kept}. ` : "";
  const refused = aside.length ? `${quantity(aside.length, "mark")} from before set aside, which the server refuses: ${aside.at(-1)}.` : "";
  wrong.hidden = !failed && !refused;
  wrong.textContent = failed + refused;
}

addEventListener("beforeunload", (event) => { if (unsaved.size) event.preventDefault(); });

// -- how it stands --------------------------------------------------------------------------------------------

// An answer that was counted before the marks on their way may come after theirs, and is older.
async function latestStanding() {
  let before, told;
  do {
    await waiting.sending;
    before = deliveries;
    told = await ask("standing", { what });
  } while (waiting.sending || before !== deliveries);
  standing(told);
}

function standing(told) {
  const { descent, audit } = told;
  element("relevant").textContent = told.relevant;
  element("labelled").textContent = told.labelled;
  element("in-a-row").textContent = Math.min(descent.in_a_row, told.in_a_row);
  element("barren").value = descent.in_a_row;
  const stop = element("stop");
  stop.hidden = !told.stopped;
  stop.textContent = descent.stopped_at ? `Stopped at ${descent.stopped_at}` : "The whole list";
  element("descent").hidden = told.stopped || what === "audit";
  const running = audit && audit.done < audit.size;
  const { joinable } = told;
  element("joining").hidden = !joinable;
  if (joinable) element("joinable").textContent = `${joinable.people.join(", ")} audits the rest: ${joinable.done} of ${quantity(joinable.size, "photo")} labelled.`;
  element("size").max = Math.max(told.rest, 1);
  element("rest").textContent = `of ${told.rest} that ${what === "team" ? "nobody has" : "you have not"} labelled`;
  if (!sized && told.rest) element("size").value = Math.min(element("size").value, told.rest);
  const audited = audit && !running;
  if (what === "audit" ? audited : told.stopped && (audited || ended(told))) onward(what === "audit" ? "The audit is done." : "This query is done.");
  element("drawing").hidden = !told.rest || joinable || !told.stopped || running || (audit && what === "audit") || (!told.grows && descent.depth >= told.listed);
  due(told, running);
  element("left").textContent = left(told);
  const drawn = audit?.left ? `the audit found ${audit.relevant} of ${audit.size}${later(audit)}` : "";
  element("interval").textContent = drawn && (told.found_at_least < 1 ? `(95 %); ${drawn}${found(told)}` : `(${drawn})`);  // no interval of a count
}

// At the end one sentence, and one main button: the step that is due.
function due({ stopped, joinable, audit }, running) {
  const audits = !element("drawing").hidden, mine = running && what !== "audit";
  element("next").classList.toggle("main", !(stopped && audits) && !joinable && !mine);
  element("audit").classList.toggle("main", stopped && audits);
  element("join").classList.toggle("main", Boolean(joinable));
  element("go-audit").hidden = !mine;
  if (stopped && !audit && audits) onward("Labelled to its stop; the audit is due.");
  if (joinable) onward("The audit of this query is under way.");
  if (mine) onward(`The audit is due: ${audit.done} of ${quantity(audit.size, "photo")}.`);
}

const later = ({ later: photos }) => (photos ? `; ${photos} came on the list after the draw, of which it says nothing` : "");

const ended = ({ grows: more, listed, descent }) => !more && listed > 0 && descent.depth >= listed;

function onward(text) {
  element("onward").hidden = false;
  element("over").textContent = text;
}

async function nextQuery() {
  while (unsaved.size) await new Promise((done) => setTimeout(done, 50));  // who leaves earlier is asked whether they want to
  element("next").click();
}

// Rounded down, for a share of "at least".
function found({ found_at_least: share, found_by_rank: byRank }) {
  const percent = (number) => `${Math.floor(100 * number)} %`;
  const byDepth = byRank === null ? "" : `; at least ${percent(byRank)} if each doubling of the depth hides no more than the one before`;
  return `, so at least ${percent(share)} of all are found${byDepth}`;
}

function left({ audit, listed, descent, grows: more }) {
  if (audit?.left) return audit.left.text;
  if (audit) return `the audit says, ${audit.done} of ${quantity(audit.size, "photo")} done${audit.people.length ? ` by ${audit.people.length}` : ""}`;
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
  x: () => downToHere("n"), Enter: () => toggle(zoom),
  u: undo, m: toUnmarked, g: openOrClose, f: flag, q: nextQuery, z: () => toggle(zoom), " ": () => toggle(zoom), "?": () => toggle(help),
  Home: () => go(0), End: () => go(photos.length - 1),
};
// All photos without a mark down to here, as on the search page: Shift with y, n or d.
function downToHere(value) {
  const open = photos.slice(0, range()[1] + 1).flatMap(items).filter((one) => !one.mark);
  if (open.length) put(open, value);
  else notice("There is no unmarked photo down to here");
}

const MOVES = { ArrowLeft: () => -1, ArrowRight: () => 1, ArrowUp: () => -across(), ArrowDown: across };
const MARKED = { y: 1, n: 1, d: 1 };
const REPEATED = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select") || ([" ", "Enter"].includes(event.key) && event.target.closest("button, a, summary"))) return;
  if (event.repeat && event.key === "Enter") event.preventDefault();  // on a button it would click on and on
  if (event.repeat && !REPEATED.has(event.key)) return;  // a key held down has looked at nothing
  if (help.open && event.key !== "?") return;  // what is behind it is not looked at
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const move = MOVES[key];
  if (!move && !ACTIONS[key]) return;
  event.preventDefault();
  const many = event.shiftKey && key in MARKED;
  const act = () => (many ? downToHere(key) : !move ? ACTIONS[key]() : (event.shiftKey ? stretch : go)(here + move()));
  if (many || key === "x") act();  // for photos that were looked at, whatever comes
  else press(key, act);
});

function press(key, act) {
  if (!late) { notice(""); return act(); }
  queued.push([key, act]);
  tellWaiting();
}

for (const button of document.querySelectorAll("[data-key]")) button.addEventListener("click", () => press(button.dataset.key, ACTIONS[button.dataset.key]));
element("audit").addEventListener("click", ({ currentTarget }) => {
  if (element("size").reportValidity()) draw(currentTarget, "audit", { size: element("size").value });
});
element("size").addEventListener("input", () => { sized = true; });
element("join").addEventListener("click", ({ currentTarget }) => draw(currentTarget, "audit/join"));

async function begin() {
  tally();
  const told = await ask("standing", { what });
  standing(told);
  const depth = what === "list" ? told.descent.depth : 0;
  first = from === null ? Math.max(0, depth - 24) : Number(from) || 0;
  if (what === "team" && from === null) first = (await ask("photos", { what, resume: true, count: 1 })).first;
  element("earlier").hidden = first === 0;
  element("earlier").querySelector("a").href = address("label", { what, first: 0 });
  await load();
  if (HANDED && !photos.some(isOpen)) await load();  // further photos of it
  const open = photos.findIndex(isOpen);
  go(open < 0 ? 0 : open);
  box.focus({ preventScroll: true });
  keep();
}

begin().catch(tell);
