// Photos that are dropped or chosen are sent one after the other, and then indexed. Without this script the form sends them.
"use strict";
{
const brought = document.querySelector("#brought"), form = document.querySelector("#bring"), bar = brought.querySelector("progress");
const status = brought.querySelector("[role=status]"), failures = brought.querySelector("ul");
const LOOKS = /\.(jpe?g|png|webp|gif|tiff?|bmp|hei[cf]|avif|cr2|nef|arw|dng|orf|rw2|raf)$/i;

function fail(name, why) {
  const item = document.createElement("li");
  item.textContent = `${name}: ${why}`;
  failures.append(item);
}
async function send(file) {
  const body = new FormData();
  body.append("photos", file, file.name);
  const answer = await fetch("/add/photos", { method: "POST", body }).catch(() => null);
  if (answer?.ok) return true;
  const detail = (await answer?.json().catch(() => null))?.detail;
  fail(file.name, detail?.replace(`${file.name}: `, "") || (answer ? `the server answers ${answer.status}` : "the server cannot be reached"));
  return false;
}
async function bring(files) {
  if (!files.length) return;
  brought.hidden = false;
  failures.replaceChildren();
  bar.max = files.length;
  let sent = 0;
  for (const [at, file] of files.entries()) {
    sent += await send(file) ? 1 : 0;
    bar.value = at + 1;
    status.textContent = `${at + 1} of ${files.length} sent`;
  }
  if (!sent) { status.textContent = "None could be added."; return; }
  const answer = await fetch("/add/uploads", { method: "POST" }).catch(() => null);
  const wrong = answer?.ok ? "" : (await answer?.json().catch(() => null))?.detail || "the server cannot be reached";
  if (wrong) { fail("Indexing", wrong); return; }
  status.textContent = `${sent} of ${files.length} stored.`;
  window.htmx.ajax("GET", "/add/state", { target: "#indexing", swap: "outerHTML" });
}
// The files of what was dropped, folders looked through
async function filesOf(entry) {
  if (entry.isFile) return new Promise((found) => entry.file((file) => found([file]), () => found([])));
  const reader = entry.createReader(), all = [];
  for (;;) {
    const some = await new Promise((found) => reader.readEntries(found, () => found([])));
    if (!some.length) return all;
    for (const one of some) all.push(...await filesOf(one));
  }
}
// Whoever chooses files wants them added
form.querySelector("button").hidden = true;
form.querySelector("[type=file]").addEventListener("change", ({ target }) => bring([...target.files]));
const carries = (event) => [...event.dataTransfer.types].includes("Files");
document.addEventListener("dragover", (event) => { if (carries(event)) event.preventDefault(); });
document.addEventListener("drop", async (event) => {
  if (!carries(event)) return;
  event.preventDefault();
  const entries = [...event.dataTransfer.items].map((one) => one.webkitGetAsEntry?.()).filter(Boolean);
  const plain = [...event.dataTransfer.files];
  const found = entries.length ? (await Promise.all(entries.map(filesOf))).flat() : plain;
  bring(found.filter((one) => one.type.startsWith("image/") || LOOKS.test(one.name)));
});
}
