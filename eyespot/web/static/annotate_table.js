// Keys of the table of queries, and choosing all of them at once. Without this script all of it is done by the forms.
"use strict";

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const wanted = { n: "next", "/": "find" }[event.key];
  const target = wanted && document.getElementById(wanted);
  if (!target) return;
  event.preventDefault();
  if (wanted === "next") target.click();
  else target.select();
});

// A select acts as soon as it is changed; the button stays for keyboards and pages without scripts.
for (const select of document.querySelectorAll(".narrowing select")) select.addEventListener("change", () => select.form.requestSubmit());

const every = document.getElementById("every");
const boxes = [...document.querySelectorAll("tbody .tick-cell input")];
if (every) {
  every.hidden = false;
  const count = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    document.getElementById("chosen").textContent = chosen ? `${chosen} chosen` : "";
    every.checked = chosen > 0 && chosen === boxes.length;
    every.indeterminate = chosen > 0 && chosen < boxes.length;
  };
  every.addEventListener("change", () => { for (const box of boxes) box.checked = every.checked; count(); });
  let last = null;
  for (const box of boxes) box.addEventListener("click", ({ shiftKey }) => {
    const [from, to] = [boxes.indexOf(last ?? box), boxes.indexOf(box)].sort((one, other) => one - other);
    if (shiftKey) for (const between of boxes.slice(from, to + 1)) between.checked = box.checked;
    last = box;
    count();
  });
  document.getElementById("assigning").addEventListener("submit", (event) => {
    if (boxes.some((box) => box.checked)) return;
    event.preventDefault();
    document.getElementById("chosen").textContent = "Choose queries first";
  });
}
