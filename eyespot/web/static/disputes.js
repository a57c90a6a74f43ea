// Disputes are settled where they stand, and their photos shown large. Without this script each takes a page load.
"use strict";
const zoom = document.getElementById("zoom");
const list = document.querySelector(".disputed");

list.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target, card = form.closest("li"), mark = event.submitter.value;
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const answer = await fetch(form.action, { method: "POST", body, headers: { "HX-Request": "true", Accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) return complain(card, (await answer?.json().catch(() => null))?.detail || "The server cannot be reached.");
  if (answer.redirected) return location.reload(); // they agree by now
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("li");
  card.replaceWith(fresh);
  document.getElementById("left").textContent = fresh.dataset.left;
  document.getElementById("told").textContent = fresh.querySelector("p + p").textContent;
  (fresh.querySelector(`button[value="${mark}"]`) || fresh.querySelector("button")).focus({ preventScroll: true });
});

function complain(card, why) {
  card.querySelector(".problem")?.remove();
  const box = document.createElement("p");
  box.className = "problem";
  box.setAttribute("role", "alert");
  box.textContent = `This was not kept; try again. ${why}`;
  card.append(box);
}

list.addEventListener("click", (event) => {
  const link = event.target.closest(".enlarge");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  document.getElementById("large").src = link.href;
  document.getElementById("large").alt = link.firstElementChild.alt;
  zoom.showModal();
});
document.getElementById("close").addEventListener("click", () => zoom.close());
zoom.addEventListener("click", (event) => { if (event.target === zoom) zoom.close(); });
