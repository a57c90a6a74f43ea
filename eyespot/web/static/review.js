// One case after the other: nothing moves on before the server has it on disk, and what it has not is sent again.
"use strict";

const work = document.getElementById("work");
const { key, who } = work.dataset;
const blind = "blind" in work.dataset;
const zoom = document.getElementById("zoom");
const help = document.getElementById("help");
const KEPT = `eyespot-undecided ${JSON.stringify([who, key])}`;
const CHOICES = blind ? { accept: "yes", drop: "no" } : { accept: "accepted", mend: "edited", drop: "dropped" };

let shown = null;      // the case before one's eyes
let sending = false;
let large = 0;         // which picture is large
const past = [];       // [digest of the case, place, digest of the decision], for undo

const element = (id) => document.getElementById(id);
const say = (text) => { element("told").textContent = text; };

async function ask(path, init) {
  const answer = await fetch(`/review/${key}/${path}`, init);
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(told.detail || `the server answers ${answer.status}`), { status: answer.status, told });
  return told;
}

// -- showing --------------------------------------------------------------------------------------------------

function show(one) {
  shown = one;
  element("case").hidden = !one;
  element("finished").hidden = Boolean(one);
  element("place").textContent = one ? `case ${one.place}` : "";
  if (zoom.open) zoom.close();
  history.replaceState(null, "", one ? `?place=${one.place}` : location.pathname);
  if (!one) return say("All is decided");
  element("why").textContent = one.why;
  element("id").textContent = one.id;
  element("note").value = one.stands?.mine ? one.stands.note : "";
  element("pictures").replaceChildren(...one.pictures.map(picture));
  element("texts").replaceChildren(...Object.entries(one.texts).map(([name, text]) => box(name, text, one.stands?.texts[name])));
  stands(one.stands);
  markEdited();
  element("case").focus({ preventScroll: true });
  scrollTo(0, 0);
  say(`Case ${one.place}: ${one.why}`);
}

function picture(address, at) {
  const figure = document.createElement("figure");
  const image = document.createElement("img");
  const caption = document.createElement("figcaption");
  image.src = address;
  image.alt = `Picture ${at + 1}`;
  image.addEventListener("click", () => enlarge(at));
  image.addEventListener("error", () => { caption.hidden = false; caption.textContent = `Picture ${at + 1} cannot be shown`; });
  caption.textContent = blind ? ["The first picture", "The second: does it answer?"][at] || "" : `Picture ${at + 1}`;
  caption.hidden = shown.pictures.length < 2;
  figure.append(image, caption);
  return figure;
}

function box(name, text, edited) {
  const label = document.createElement("label");
  const area = document.createElement("textarea");
  const back = document.createElement("button");
  area.name = name;
  area.dir = "auto";
  area.maxLength = 20000;
  area.value = edited ?? text;
  area.addEventListener("input", markEdited);
  back.type = "button";
  back.className = "quiet back";
  back.textContent = "Put it back";
  back.addEventListener("click", () => { area.value = text; markEdited(); tell(null); element("case").focus({ preventScroll: true }); });
  label.append(name, area);
  const around = document.createElement("div");
  around.append(label, back);
  return around;
}

function stands(decision) {
  element("stands").hidden = !decision;
  if (!decision) return;
  const by = decision.mine ? "You" : decision.who;
  const what = CHOICES[decision.choice] || "an answer";
  element("stands").textContent = blind && decision.choice ? `${by} said ${what}.` : blind ? `${by} gave ${what}.` : `${by} ${what} this${decision.note ? `: ${decision.note}` : "."}`;
}

function edits() {
  const found = {};
  for (const area of element("texts").querySelectorAll("textarea")) {
    const changed = area.value !== shown.texts[area.name];
    area.closest("div").classList.toggle("changed", changed);
    if (changed) found[area.name] = area.value;
  }
  return found;
}

function markEdited() {
  const changed = shown && Object.keys(edits()).length > 0;
  element("edit")?.setAttribute("aria-disabled", String(!shown || !Object.keys(shown.texts).length));
  element("edit")?.classList.toggle("main", changed);
  document.querySelector(".keys [data-key=a]").classList.toggle("main", !changed);
}

function count(told) {
  element("progress").max = told.cases || 1;
  element("progress").value = told.cases - told.open;
  element("done").textContent = told.cases - told.open;
  element("cases").textContent = told.cases;
}

function tell(error) {
  element("wrong").hidden = !error;
  if (error) element("wrong").textContent = error.status ? `${error.message}.` : "The server cannot be reached; your decision is kept in this browser and sent again.";
}

// -- deciding -------------------------------------------------------------------------------------------------

function decide(choice) {
  if (!shown || sending) return;
  const texts = choice === "mend" ? edits() : {};
  if (choice !== "mend" && Object.keys(edits()).length) return tell({ status: 1, message: "You changed a text: save it with Edit, or put it back" });
  if (choice === "mend" && !Object.keys(texts).length) return edit();
  const said = { case: shown.case, choice, texts, note: element("note").value.trim(), seen: shown.stands?.seen ?? null };
  keep({ said, place: shown.place });
}

function edit() {
  const area = element("texts").querySelector("textarea");
  if (!area) return say("There is no text to edit; accept it or drop it");
  area.focus();
  area.setSelectionRange(area.value.length, area.value.length);
}

function undo() {
  if (sending) return;
  const last = past.pop();
  if (!last) return say("There is nothing to take back");
  keep({ said: { case: last[0], choice: "withdraw", seen: last[2] }, place: last[1] });
}

async function keep(pending) {
  localStorage.setItem(KEPT, JSON.stringify(pending));
  sending = true;
  element("saving").textContent = "Saving…";
  for (let wait = 250; ; wait = Math.min(2 * wait, 4000)) {
    try {
      const headers = { "Content-Type": "application/json" };
      done(pending, await ask("decisions", { method: "POST", body: JSON.stringify(pending.said), headers }));
      tell(null);
      break;
    } catch (error) {
      tell(error);
      if (error.status && error.status < 500) {
        await refused(error, pending);
        break;
      }
      element("saving").textContent = "Not saved yet";
      await new Promise((over) => setTimeout(over, wait));
    }
  }
  localStorage.removeItem(KEPT);
  sending = false;
  element("saving").textContent = "All saved";
}

function done(pending, told) {
  count(told);
  if (pending.said.choice === "withdraw") {
    say("Taken back");
    return open({ place: pending.place });
  }
  past.push([pending.said.case, pending.place, told.seen]);
  show(told.next);
}

async function refused(error, pending) {
  if (error.status === 409 && "stands" in (error.told || {}) && shown?.case === pending.said.case) {
    shown.stands = error.told.stands;
    return stands(shown.stands);
  }
  await open({ place: pending.place }).catch(() => {});
}

async function open(wish) {
  const told = await ask(`case?${new URLSearchParams(wish)}`);
  count(told);
  show(told.case);
}

// -- looking --------------------------------------------------------------------------------------------------

function enlarge(at) {
  if (!shown?.pictures.length) return;
  large = at % shown.pictures.length;
  element("large").src = `${shown.pictures[large]}?side=1600`;
  element("large").alt = `Picture ${large + 1}`;
  element("which").textContent = `Picture ${large + 1} of ${shown.pictures.length}`;
  element("other").hidden = shown.pictures.length < 2;
  if (!zoom.open) zoom.showModal();
}

function larger() {
  if (!zoom.open) return enlarge(0);
  if (large + 1 < shown.pictures.length) return enlarge(large + 1);
  zoom.close();
}

// -- keys -----------------------------------------------------------------------------------------------------

const quietly = (work) => () => { if (!sending) work().catch(tell); };
const ACTIONS = {
  a: () => decide("accept"), d: () => decide("drop"), u: undo, z: larger, " ": larger,
  s: quietly(() => open({ after: shown ? shown.place : 0 })),
  b: quietly(() => open({ place: Math.max(1, (shown ? shown.place : Infinity) - 1) })),
  "?": () => (help.open ? help.close() : help.showModal()),
  ...(blind ? { y: () => decide("accept"), n: () => decide("drop") } : { m: () => decide("mend") }),
};

addEventListener("keydown", (event) => {
  const writing = event.target.closest("textarea, input");
  if (writing) return wrote(event, writing);
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === " " && event.target.closest("button, a, summary")) return;
  const action = ACTIONS[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
});

function wrote(event, area) {
  if (event.key === "Escape") {
    event.preventDefault();
    element("case").focus({ preventScroll: true });
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && area.name) {
    event.preventDefault();
    decide("mend");
  }
  if (event.key === "Enter" && !area.name) element("case").focus({ preventScroll: true });
}

for (const button of document.querySelectorAll("[data-key]")) button.addEventListener("click", () => ACTIONS[button.dataset.key]());
element("other").addEventListener("click", () => enlarge(large + 1));
addEventListener("beforeunload", (event) => { if (sending) event.preventDefault(); });

const place = new URLSearchParams(location.search).get("place");
const left = JSON.parse(localStorage.getItem(KEPT) || "null");
open(place ? { place } : {}).then(() => left && keep(left)).catch(tell);
