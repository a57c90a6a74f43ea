// Two rankings side by side: the photo under the pointer or the focus stands out on the other side too.
"use strict";
{
const twins = (event) => {
  const tile = event.target.closest?.(".sides li");
  for (const old of document.querySelectorAll(".sides .twin")) old.classList.remove("twin");
  if (!tile) return;
  const same = document.querySelectorAll(`.sides li[data-id="${CSS.escape(tile.dataset.id)}"]`);
  if (same.length > 1) for (const one of same) one.classList.add("twin");
};
for (const name of ["pointerover", "focusin"]) document.addEventListener(name, twins);
for (const one of document.querySelectorAll(".sides-form select")) one.addEventListener("change", () => one.form.requestSubmit());
}
