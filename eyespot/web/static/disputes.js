// Disputes are settled with one key each, where they stand. Words go to the server one after the other, and again after
// a lost network; without this script each takes a page load.
"use strict";
const zoom = document.getElementById("zoom");
const list = document.getElementById("disputed");
const WORDS = { y: "yes", n: "no", d: "unsure" };
const waiting = [];   // {card id, image, mark, note}: what the server has not yet
const past = [];      // cards that were settled here, for undo
let here = null, sending = false;

const cards = () => [...list.children];
const isOpen = (card) => !card.dataset.word && !card.dataset.own;
document.getElementById("dispute-keys")?.removeAttribute("hidden");

// -- where one is -----------------------------------------------------------------------------------------------

function go(card, shown = true) {
  if (!card) return;
  list.querySelector(".here")?.classList.remove("here");
  here = card.id;
  card.classList.add("here");
  if (shown) card.scrollIntoView({ block: "nearest" });
  if (zoom.open) enlarge(card);
}

const current = () => here && document.getElementById(here);

function move(step) {
  const all = cards();
  go(all[Math.max(0, Math.min(all.indexOf(current()) + step, all.length - 1))]);
}

function nextOpen() {
  const all = cards(), from = all.indexOf(current());
  return [...all.slice(from + 1), ...all.slice(0, from)].find(isOpen);
}

function across() {
  const all = cards(), top = all[0]?.offsetTop;
  const next = all.findIndex((card) => card.offsetTop !== top);
  return next < 1 ? Math.max(all.length, 1) : next;
}

function enlarge(card) {
  const link = card.querySelector(".enlarge");
  document.getElementById("large").src = link.href;
  document.getElementById("large").alt = link.firstElementChild.alt;
  document.getElementById("place").textContent = `${card.querySelector(".who-said").textContent.trim().replace(/\s+/g, " ")} · ${card.querySelector(".word").textContent.trim()}`;
}

function toggleZoom() {
  if (zoom.open) return zoom.close();
  if (!current()) return;
  enlarge(current());
  zoom.showModal();
}

// -- words ------------------------------------------------------------------------------------------------------

function settle(card, mark, goesOn) {
  if (card.dataset.own) return complain(card, "You have marked this photo, so somebody else settles it.", "");
  if (mark === "back" && !card.dataset.mine) return;
  if (mark !== "back") past.push(card.id);
  card.dataset.word = mark === "back" ? "" : mark;
  card.dataset.mine = mark === "back" ? "" : "1";
  card.classList.toggle("settled", mark !== "back");
  card.querySelector(".word").textContent = mark === "back" ? "Open …" : `Settled as ${WORDS[mark]} …`;
  waiting.push({ id: card.id, image: card.dataset.image, mark, note: "" });
  tally();
  if (goesOn) go(nextOpen() || card);
  send();
}

function undo() {
  const id = past.pop(), card = id && document.getElementById(id);
  if (!card) return say("There is nothing to take back");
  go(card);
  settle(card, "back", false);
}

function keepNote(form) {
  const card = form.closest("li"), note = form.elements.note.value.trim();
  if (!note) return;
  form.elements.note.value = "";
  waiting.push({ id: card.id, image: card.dataset.image, mark: "note", note });
  form.elements.note.blur();
  form.closest("details").open = false;
  send();
}

const say = (text) => { document.getElementById("told").textContent = text; };

function tally() {
  const open = cards().filter((card) => !card.dataset.word).length;
  document.getElementById("left").textContent = open;
  document.getElementById("settled-all").hidden = open > 0;
  document.getElementById("saving").textContent = waiting.length ? `${waiting.length} not saved yet` : "All saved";
}

async function send() {
  if (sending) return;
  sending = true;
  for (let wait = 250; waiting.length; ) {
    tally();
    const one = waiting[0], card = document.getElementById(one.id);
    const body = new URLSearchParams({ query: list.dataset.query, image: one.image, mark: one.mark, note: one.note });
    const answer = await fetch("/annotate/settle", { method: "POST", body, headers: { "HX-Request": "true", Accept: "application/json" } }).catch(() => null);
    if (!answer || answer.status >= 500 || answer.status === 429) {
      complain(card, "The server cannot be reached; it is sent again.", "This is not saved yet. ");
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(2 * wait, 4000);
      continue;
    }
    waiting.shift();
    wait = 250;
    if (!answer.ok) refused(card, (await answer.json().catch(() => null))?.detail || `the server answers ${answer.status}`);
    else if (answer.redirected) card.remove();  // they agree by now
    else renew(card, await answer.text());
  }
  sending = false;
  tally();
}

function renew(card, text) {
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("li");
  if (waiting.some((one) => one.id === card.id)) return;  // said anew meanwhile; the last answer shows it
  const focused = document.activeElement.closest("button") && card.contains(document.activeElement) ? document.activeElement.value : null;
  fresh.classList.toggle("here", card.classList.contains("here"));
  const note = card.querySelector(".note-of");
  const written = note.open ? document.activeElement : null;
  if (note.open) fresh.querySelector(".note-of").replaceWith(note);  // somebody writes there
  card.replaceWith(fresh);
  if (note.contains(written)) written.focus({ preventScroll: true });
  say(fresh.querySelector(".word").textContent);
  if (zoom.open && fresh.id === here) enlarge(fresh);
  const button = focused ? fresh.querySelector(`button[value="${focused}"]`) || fresh.querySelector("button") : null;
  button?.focus({ preventScroll: true });
}

function refused(card, why) {
  card.dataset.word = card.dataset.mine = "";
  card.classList.remove("settled");
  card.querySelector(".word").textContent = "Open";
  complain(card, why, "This was not kept. ");
}

function complain(card, why, lead) {
  card.querySelector(".problem")?.remove();
  const box = document.createElement("p");
  box.className = "problem";
  box.setAttribute("role", "alert");
  box.textContent = lead + why;
  card.append(box);
}

addEventListener("beforeunload", (event) => { if (waiting.length) event.preventDefault(); });

// -- keys and mouse ---------------------------------------------------------------------------------------------

const ACTIONS = {
  y: () => settle(current(), "y", true), n: () => settle(current(), "n", true), d: () => settle(current(), "d", true),
  u: undo, z: toggleZoom, " ": toggleZoom,
  c: () => { zoom.close(); const box = current().querySelector(".note-of"); box.open = true; box.querySelector("[name=note]").focus(); },
  f: () => { const card = current(); flagPhoto(card.dataset.image, (flags) => showFlags(card.id, flags)); },
  ArrowLeft: () => move(-1), ArrowRight: () => move(1), ArrowUp: () => move(-across()), ArrowDown: () => move(across()),
};
const REPEATED = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === " " && event.target.closest("button, a, summary")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (!ACTIONS[key] || !current() || (event.repeat && !REPEATED.has(key))) return;
  event.preventDefault();
  ACTIONS[key]();
});

function showFlags(id, flags) {
  const card = document.getElementById(id);
  for (const old of card.querySelectorAll(".flagged")) old.remove();
  for (const words of flags) {
    const line = document.createElement("p");
    line.className = "small flagged";
    line.textContent = `⚑ ${words}`;
    card.querySelector(".notes").after(line);
  }
}

list.addEventListener("submit", (event) => {
  event.preventDefault();
  const card = event.target.closest("li"), mark = event.submitter.value;
  if (mark === "note") return keepNote(event.target);
  go(card);
  settle(card, mark, false);
});

list.addEventListener("click", (event) => {
  const card = event.target.closest("li"), link = event.target.closest(".enlarge");
  if (card && !event.target.closest("button, input, summary")) go(card);
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  toggleZoom();
});
document.getElementById("close").addEventListener("click", () => zoom.close());
zoom.addEventListener("click", (event) => { if (event.target === zoom) zoom.close(); });
go(cards().find(isOpen) || cards()[0], false);
