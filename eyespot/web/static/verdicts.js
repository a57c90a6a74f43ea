// Verdicts on photos: shown at once, and waiting in the browser until the server has them. It uses what search.js and
// queue.js define.
"use strict";
const said = { y: "yes", n: "no", d: "doubt" };
const marks = { yes: "✓ yes", no: "✕ no", doubt: "? unsure", "": "" };
const past = []; // what was said before, for undo: for each key pressed, photos with the verdict that they had
const asked = new URLSearchParams(location.search);
const about = Object.fromEntries(["q", "picture"].filter((name) => asked.get(name)).map((name) => [name, asked.get(name)]));

function judge(what, verdict) { judgeAll([what], verdict); }
// The same verdict on several photos, taken back by one undo.
function judgeAll(several, verdict) {
  if (!several.length) return tell("There is no photo without a verdict down to here.");
  if (!about.q && !about.picture) return complain("Search for words or a picture first: a verdict is on what was asked.");
  const changed = several.map((what) => [what, what.dataset.verdict || ""]).filter(([, before]) => before !== verdict);
  if (changed.length) {
    past.push(changed);
    put(changed.map(([what]) => [what, verdict]));
  }
  if (verdict) onward(several.at(-1));
}
function undo() {
  const before = past.pop();
  if (!before) return tell("There is nothing to take back.");
  put(before);
  const [[what]] = before;
  if (large?.open && what.matches(".tile")) show(what);
  else $(".picture", wake(what))?.focus();
}
// A key is the query, and the photo; of other queries than this page's own, too, nothing is lost.
const keyOf = (id) => JSON.stringify([about, id]);
const same = (id) => all(`[data-id="${CSS.escape(id)}"]`);
const waiting = new Waiting({
  place: `eyespot-verdicts ${document.body.dataset.gallery} ${document.body.dataset.who} `,
  refuses: (status) => status >= 400 && status < 500 && ![401, 408, 429].includes(status),
  post: sendTogether, confirmed, failed,
  aside: ([key, { before, verdict }], error) => {
    const [of, id] = JSON.parse(key);
    if (JSON.stringify(of) === JSON.stringify(about)) { for (const one of same(id)) mark(one, before); count(verdict, before); }
    complain(`A verdict was not kept: ${error.message}.`);
  },
});
const isWaiting = (id) => waiting.marks.has(keyOf(id));
function put(pairs) {
  for (const [what, verdict] of pairs) {
    const { id, rank, verdict: before = "" } = what.dataset;
    for (const one of same(id)) { mark(one, verdict); one.classList.add("unsaved"); }
    count(before, verdict);
    waiting.put(keyOf(id), { verdict, before: waiting.marks.get(keyOf(id))?.before ?? before, rank: Number(rank) || null });
  }
  waiting.send();
}
// The verdicts on one query at a time, to their end also where somebody leaves the page meanwhile.
async function sendTogether(batch) {
  let last = null;
  for (const of of new Set(batch.map(([key]) => JSON.stringify(JSON.parse(key)[0])))) {
    const mine = batch.filter(([key]) => JSON.stringify(JSON.parse(key)[0]) === of);
    const body = JSON.stringify({ ...JSON.parse(of), marks: mine.map(([key, { verdict, rank }]) => ({ item: JSON.parse(key)[1], verdict: verdict || null, rank })) });
    const wrong = (detail, status) => { throw Object.assign(new Error(detail), { status }); };
    last = await ask("/v1/judgements/several", { method: "POST", keepalive: true, headers: { "Content-Type": "application/json" }, body }, wrong);
  }
  return last;
}
// Without an answer they were refused, which `aside` has shown.
function confirmed(batch, answer) {
  for (const [key] of batch) for (const one of same(JSON.parse(key)[1])) one.classList.remove("unsaved");
  const verdict = batch[0]?.[1].verdict, many = batch.length > 1 ? `${quantity(batch.length, "photo")} ` : "";
  if (!batch.length || !answer) return;
  if (batch.some(([, one]) => one.verdict !== verdict)) tell(`${many}changed.`);
  else tell(verdict ? `Kept: ${many}${verdict === "doubt" ? "unsure" : verdict}.` : many ? `${many}taken back.` : "Taken back.");
}
function failed(error) {
  const many = waiting.marks.size, old = $(".toast.waits");
  if (!error || !many) return old?.remove();
  const words = `${quantity(many, "verdict waits in this browser and is", "verdicts wait in this browser and are")} sent again: ${error.message}.`;
  if (old) { $("span", old).textContent = words; return null; }
  complain(words, () => waiting.hurry());
  return $(".toast")?.classList.add("waits");
}
// What waits since an earlier visit stands on its photos, also on those that come later.
function showWaiting() {
  for (const [key, { verdict }] of waiting.marks) {
    const [of, id] = JSON.parse(key);
    if (JSON.stringify(of) !== JSON.stringify(about)) continue;
    for (const one of same(id)) if ((one.dataset.verdict || "") !== verdict || !one.classList.contains("unsaved")) { mark(one, verdict); one.classList.add("unsaved"); }
  }
}
if (grid) new MutationObserver(showWaiting).observe(grid, { childList: true });
for (const [key, { before, verdict }] of waiting.marks) if (JSON.stringify(JSON.parse(key)[0]) === JSON.stringify(about)) count(before, verdict);
showWaiting();
waiting.send();
// Whoever goes where verdicts count waits for them, but not for a server that is away.
const settled = () => Promise.race([waiting.send(), new Promise((done) => setTimeout(done, 4000))]);
// The numbers of the tabs go along with one's own verdicts.
function count(before, verdict) {
  const tabs = $(".tabs");
  offerAgain();
  if (!tabs || asked.get("whose")) return;
  for (const [name, by] of [[before || "unjudged", -1], [verdict || "unjudged", 1]]) {
    const place = $(`[data-tab=${name}] .count`, tabs), number = Math.max(0, Number(place.dataset.count) + by);
    place.dataset.count = number;
    place.textContent = number.toLocaleString("en");
  }
  const of = (name) => Number($(`[data-tab=${name}] .count`, tabs).dataset.count), judged = of("yes") + of("no") + of("doubt");
  for (const one of all("#moves [data-of]")) one.textContent = (one.dataset.of === "judged" ? judged : of(one.dataset.of)).toLocaleString("en");
  for (const one of all("#moves .marked")) one.hidden = !judged;
}
// A ranking that verdicts move stays as it is while one judges; it is made anew when asked for, with all that was said.
function offerAgain() {
  const again = $("#again");
  if (again) again.hidden = false;
}
document.addEventListener("click", async (event) => {
  const link = event.target.closest("#again, #moved + a, #moves a, #onward");
  if (!link || !waiting.marks.size) return;
  event.preventDefault();
  await settled();
  if (!waiting.marks.size) location.href = link.href;
});
document.addEventListener("submit", async (event) => {
  if (event.target.id !== "draw-audit" || !waiting.marks.size) return;
  event.preventDefault();
  await settled();
  if (!waiting.marks.size) event.target.submit();
});
// More like this and Not this are remembered for the query, by whoever may judge; a photo in the chips is taken back.
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-act=like], [data-act=unlike], .chips [data-drawn]");
  if (!link || !$("#moves") || !(about.q || about.picture)) return;
  const id = link.dataset.drawn || (large?.open && shown ? shown : link.closest("[data-id]"))?.dataset.id;
  const like = link.dataset.drawn ? null : link.dataset.act === "like";
  if (!id) return;
  const body = JSON.stringify({ ...about, item: id, like });
  fetch("/v1/clicks", { method: "POST", keepalive: true, headers: { "Content-Type": "application/json" }, body }).catch(() => null);
});
// On to the next photo; of a spread to the next one without a verdict.
async function onward(from) {
  if (large?.open) return step(1);
  if (!grid || !from.matches(".tile")) return;
  const next = "spread" in grid.dataset ? unjudged(from) || $("#onward") : await beside(from, 1);
  (next?.matches(".tile") ? $(".picture", wake(next)) : next)?.focus();
}
function unjudged(from) {
  const every = tiles(), at = every.indexOf(from);
  return [...every.slice(at + 1), ...every.slice(0, at + 1)].find((one) => !one.dataset.verdict);
}
function mark(one, verdict) {
  if (verdict) one.dataset.verdict = verdict;
  else delete one.dataset.verdict;
  const place = inside(".said", one), back = inside("[data-act=back]", one);
  if (place) place.textContent = marks[verdict];
  if (back) back.hidden = !verdict;
  for (const button of (one.asleep ?? one).querySelectorAll("button[data-verdict]")) button.setAttribute("aria-pressed", String(button.dataset.verdict === verdict));
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-verdict], button[data-act=back]");
  if (!button) return;
  const what = large?.open ? shown : button.closest("[data-id]"), verdict = button.dataset.verdict || "";
  judge(what, what.dataset.verdict === verdict ? "" : verdict); // pressed again, it is taken back
});
if (grid && "spread" in grid.dataset) $(".picture", unjudged(null) || grid)?.focus({ preventScroll: true });

// -- several photos: Shift with a click or the arrows chooses them, a finger their check marks; the next key judges them all
let anchor = null, chosen = [];
function choose(from, to) {
  const every = tiles(), [first, last] = [every.indexOf(from), every.indexOf(to)].sort((a, b) => a - b);
  anchor = from;
  setChosen(every.slice(first, last + 1));
}
function chooseNone() {
  anchor = null;
  setChosen([]);
}
// One more photo, or one less.
function toggleChosen(tile) {
  const several = new Set(chosen);
  if (!several.delete(tile)) several.add(tile);
  anchor = tile;
  setChosen(tiles().filter((one) => several.has(one)));
}
function setChosen(several) {
  const light = (one, on) => { one.classList.toggle("chosen", on); inside("[data-act=choose]", one)?.setAttribute("aria-pressed", String(on)); };
  for (const one of chosen) light(one, false);
  chosen = several;
  for (const one of chosen) light(one, true);
  showChosen();
}
// Where photos are chosen with a finger, a tap on a photo chooses it, too.
const choosesByTap = () => chosen.length > 0 && matchMedia("(pointer: coarse)").matches;
function showChosen() {
  const bar = $("#chosen-photos"), many = `${quantity(chosen.length, "photo")} chosen`;
  if (bar) {
    bar.hidden = !chosen.length;
    $(".many", bar).textContent = many;
  }
  if (chosen.length) tell(`${many}.`);
}
// The chosen photos, or the current one; the choice ends with what is done to it.
function takeChosen(current) {
  const several = chosen.length ? chosen : [current];
  if (chosen.length) chooseNone();
  return several;
}
// All photos without a verdict down to this one.
function downTo(current) {
  const every = tiles();
  return every.slice(0, every.indexOf(current) + 1).filter((one) => !one.dataset.verdict);
}
if (grid) {
  // Before the photo gets the focus: from where it was the range goes.
  grid.addEventListener("mousedown", (event) => {
    if (event.shiftKey && event.target.closest(".picture")) event.preventDefault();
  });
  grid.classList.toggle("choosable", Boolean($("#chosen-photos")));
  grid.addEventListener("click", (event) => {
    const tile = event.target.closest(".picture, [data-act=choose]")?.closest(".tile");
    if (!tile) return;
    if (event.target.closest("[data-act=choose]") || choosesByTap()) { event.preventDefault(); return toggleChosen(tile); }
    if (!event.shiftKey) return chooseNone();
    event.preventDefault();
    choose(anchor || focused() || tiles()[0], tile);
    $(".picture", tile).focus();
  });
  $("#chosen-photos")?.addEventListener("click", (event) => {
    const { act, say } = event.target.closest("button")?.dataset ?? {};
    if (act === "choose-none") return chooseNone();
    if (say && chosen.length) judgeAll(takeChosen(), say);
  });
}
