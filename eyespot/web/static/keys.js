// The keys of the search page, the spread and one photo. They use what search.js and verdicts.js define.
"use strict";
// The photo of the next row, up or down, that lies nearest to this one: rows hold as many as their shapes leave room for.
function across(every, at, by) {
  const place = (to) => every[to].getBoundingClientRect(), middle = (to) => place(to).left + place(to).width / 2, from = place(at).top;
  let near = -1, row = null;
  for (let to = at + by; every[to]; to += by) {
    if (place(to).top === from) continue;
    row ??= place(to).top;
    if (place(to).top !== row) break;
    if (near < 0 || Math.abs(middle(to) - middle(at)) < Math.abs(middle(near) - middle(at))) near = to;
  }
  return near < 0 && by > 0 ? every.length - 1 : near;
}
function move(event, current) {
  const every = tiles();
  if (!every.length) return;
  const here = every.indexOf(current), by = { ArrowLeft: -1, ArrowUp: -1 }[event.key] || 1;
  const at = !current ? 0 : /Left|Right/.test(event.key) ? Math.min(here + by, every.length - 1) : across(every, here, by);
  const next = every[at];
  if (!next) return;
  event.preventDefault();
  if (event.shiftKey) choose(anchor || current || next, next);
  else if (chosen.length || anchor) chooseNone();
  $(".picture", wake(next)).focus();
  next.scrollIntoView({ block: "nearest" });
  // Keys do not scroll to where the next photos are asked for.
  if (at >= every.length - 20) more();
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) return chosen.length ? chooseNone() : closeMenus();
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (event.target.matches("video") && event.key !== "Escape") return; // the player has keys of its own
  if (event.key === "?" && keys) return keys.open || large.open ? null : keys.showModal();
  if (event.key === "/" && form && !large.open) { event.preventDefault(); return $("#q").focus(); }
  if (keys?.open) return;
  if (event.repeat && !event.key.startsWith("Arrow")) return; // a key held down has looked at nothing
  if (shown) {
    if (event.key === "Escape") { event.preventDefault(); return leave(); }
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  }
  const current = shown || focused() || $("main > .photo") || (grid && "spread" in grid.dataset ? unjudged(null) : null);
  if (event.key.startsWith("Arrow") && grid && !shown && (current || document.activeElement === document.body)) return move(event, current);
  if (event.key === "u") return undo();
  const verdict = said[event.key.toLowerCase()];
  if (verdict && !current && grid) return complain("Choose a photo first, with the arrows.");
  if (!current) return;
  if (verdict && event.shiftKey && grid && !large?.open) { chooseNone(); return judgeAll(downTo(current), verdict); }
  if (verdict) judgeAll(takeChosen(current), verdict);
  if (event.key === "Delete" || event.key === "Backspace") judgeAll(takeChosen(current), "");
  if (grid && (event.key === "z" || (event.key === " " && event.target.matches(".tile .picture")))) {
    event.preventDefault();
    return shown ? leave() : show(current);
  }
  if (event.key === "f") $("[data-act=flag]", large?.open ? large : document)?.click();
  const act = { m: "like", x: "unlike" }[event.key];
  if (act) $(`[data-act=${act}]`, current)?.click();
});
