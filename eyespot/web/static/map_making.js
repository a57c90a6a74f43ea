// How far the map is, looked at every other second; when it is done the page shows it.
"use strict";
const box = document.querySelector("#making"), bar = box.querySelector("progress"), encoder = new URLSearchParams(location.search).get("encoder");
async function look() {
  const answer = await fetch(`/v1/map${encoder ? `?encoder=${encodeURIComponent(encoder)}` : ""}`).catch(() => null);
  const making = answer?.ok ? (await answer.json()).making : null;
  if (making && making.state !== "running") return location.reload();
  if (making) {
    box.querySelector(".what").textContent = making.what;
    if (making.total) { bar.max = making.total; bar.value = making.done; } else bar.removeAttribute("value");
  }
  setTimeout(look, 2000);
}
setTimeout(look, 1000);
