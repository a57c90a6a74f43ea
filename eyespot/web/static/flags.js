// The menu that flags a photo: f opens it, a digit chooses. `flagPhoto(image, done)` opens it for a photo.
"use strict";

const flagPhoto = (() => {
  const dialog = document.getElementById("flagging");
  const reason = document.getElementById("flag-reason");
  const told = document.getElementById("flag-told");
  let image = null, done = null;

  async function put(kind) {
    if (kind === "other" && !reason.value.trim()) return reason.focus();
    told.textContent = "";
    const body = new URLSearchParams({ image, kind, reason: reason.value });
    const answer = await fetch("/annotate/flags", { method: "POST", body, headers: { "HX-Request": "true", Accept: "application/json" } }).catch(() => null);
    const found = await answer?.json().catch(() => ({}));
    if (!answer?.ok) { told.textContent = `This was not kept; try again. ${found?.detail || "The server cannot be reached."}`; return; }
    done(found.flags);
    dialog.close();
  }

  for (const button of dialog.querySelectorAll("[data-flag]")) button.addEventListener("click", () => put(button.dataset.flag));
  dialog.addEventListener("keydown", (event) => {
    if (!dialog.open) return;  // the focus leaves a moment after it closes, and the next key is the page's
    event.stopPropagation();  // a letter here is not a mark
    if (event.target === reason) {
      if (event.key === "Enter") { event.preventDefault(); put("other"); }
      return;
    }
    const chosen = [...dialog.querySelectorAll("[data-flag]")]["1234".indexOf(event.key)];
    if (!chosen || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    chosen.click();
  });

  // A button beside a photo: it raises a flag, and the words of all flags stand behind it.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act=flag]");
    if (button) open(button.dataset.photo, (flags) => { button.nextElementSibling.textContent = flags.map((words) => `⚑ ${words}`).join(" "); });
  });

  function open(which, then) {
    [image, done] = [which, then];
    reason.value = told.textContent = "";
    dialog.showModal();
  }
  return open;
})();
