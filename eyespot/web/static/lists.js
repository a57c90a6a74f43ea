// Lists: a link in one press, chosen photos put on a list. Forms do the rest without scripts.
"use strict";
(() => {
  const find = (what, within = document) => within.querySelector(what);
  const say = (text) => { find("#told").textContent = text; };

  // The answer's JSON; throws what the server says is wrong.
  async function call(method, address, body) {
    const headers = body ? { "Content-Type": "application/json" } : {};
    const answer = await fetch(address, { method, headers, body: body && JSON.stringify(body) }).catch(() => null);
    if (!answer) throw new Error("the server cannot be reached");
    const told = answer.status === 204 ? null : await answer.json().catch(() => null);
    if (!answer.ok) throw Object.assign(new Error(told?.detail || `the server answers ${answer.status}`), { status: answer.status });
    return told;
  }
  const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
  async function lists() { return (await call("GET", "/v1/lists")).lists; }
  const folded = (name) => name.trim().toLowerCase();
  // A list of this name: made, or with these photos added where it is there.
  async function putOn(name, photos) {
    const same = (await lists()).find((one) => folded(one.name) === folded(name));
    return same ? call("PATCH", `/v1/lists/${same.list}`, photos) : call("POST", "/v1/lists", { name, ...photos });
  }
  async function copy(text) {
    try { await navigator.clipboard.writeText(text); return true; } catch { return false; }
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      if (await copy(find(`#${button.dataset.copy}`).value)) { button.textContent = "Copied"; say("The link is in the clipboard."); }
    });
  }

  // A link to this computer itself opens on no other one.
  const local = /^(localhost|127\.|\[::1\]|::1)/.test(location.hostname);
  for (const one of document.querySelectorAll("[data-local]")) one.hidden = !local;
  // -- the photos with a yes, to a colleague
  const share = find("#share");
  if (share) {
    const out = find("output", share), press = find("#share-yes");
    press.hidden = false;
    const shown = (...parts) => { out.replaceChildren(...parts); };
    async function link(one) {
      const { link: path } = await call("POST", `/v1/lists/${one.list}/link`);
      const place = document.createElement("input"), about = document.createElement("a");
      place.value = new URL(path, location.href).href;
      place.readOnly = true;
      place.setAttribute("aria-label", "The link");
      about.href = one.page;
      about.textContent = `${quantity(one.photos, "photo")}, everybody’s verdicts`;
      const copied = await copy(place.value);
      const file = Object.assign(document.createElement("a"), { href: `/v1/lists/${one.list}/download?format=sheet&verdict=yes`, textContent: "Download one HTML file to mail" });
      shown(place, copied ? "Copied. " : "Copy this link. ", about, ...(local ? [" It works on this computer alone. ", file] : []));
      place.select();
      say(copied ? "The link is in the clipboard." : "The link is there to be copied.");
    }
    async function attempt(act) {
      press.disabled = true;
      try { await act(); } catch (error) { shown(sentence(error.message)); say(sentence(error.message)); }
      press.disabled = false;
    }
    press.addEventListener("click", () => attempt(async () => {
      if (typeof settled !== "undefined") await settled();
      const everybody = new URLSearchParams(share.dataset.query).get("whose") === "everybody";
      const name = find("#list-name"), yes = { query: share.dataset.query, verdict: "yes", everybody };
      const names = new Map((await lists()).map((one) => [folded(one.name), one.list])), same = names.get(folded(name.value));
      let one;
      try {
        one = await (same ? call("PATCH", `/v1/lists/${same}`, { ...yes, update: true }) : call("POST", "/v1/lists", { name: name.value, ...yes }));
      } catch (error) {
        if (error.status === 409) {
          const wanted = name.value.trim();
          let number = 2;
          while (names.has(folded(`${wanted} ${number}`))) number++;
          name.value = `${wanted} ${number}`;
        }
        throw error;
      }
      if (!one.linked) return link(one);
      const again = document.createElement("button");
      again.type = "button";
      again.textContent = "Make a new link";
      again.addEventListener("click", () => attempt(() => link(one)));
      const off = one.removed ? `, and ${one.removed} without one ${one.removed === 1 ? "is" : "are"} taken off` : "";
      shown(`The photos with a yes are added to your list${off}. It has a link already; a new link ends the old one. `, again);
    }));
  }

  // -- chosen photos
  const dialog = find("#put-on-list");
  if (dialog) {
    const wrong = find(".problem", dialog);
    find("#chosen-photos [data-act=list]")?.addEventListener("click", async () => {
      wrong.hidden = true;
      dialog.showModal();
      const names = (await lists().catch(() => [])).map((one) => Object.assign(document.createElement("option"), { value: one.name }));
      find("datalist", dialog).replaceChildren(...names);
    });
    find("form", dialog).addEventListener("submit", async (event) => {
      event.preventDefault();
      if (event.submitter?.value === "no") return dialog.close();
      const items = chosen.map((tile) => tile.dataset.id);
      try {
        const one = await putOn(find("input", dialog).value, { items, query: dialog.dataset.query || null });
        dialog.close();
        chooseNone();
        say(`${quantity(items.length, "photo is", "photos are")} added to the list ${one.name} by ${one.by}.`);
        const note = find("#chosen-photos").nextElementSibling;
        if (note?.matches(".on-list")) { note.hidden = false; find("a", note).href = one.page; find("a", note).textContent = one.name; }
      } catch (error) {
        wrong.textContent = sentence(error.message);
        wrong.hidden = false;
      }
    });
  }

  // -- menus, where the search page's script does not close them
  if (typeof closeMenus === "undefined") {
    const openMenus = () => [...document.querySelectorAll(".menu[open]")];
    addEventListener("click", (event) => { for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false; }, true);
    addEventListener("keydown", (event) => {
      if (event.key === "Escape") for (const menu of openMenus()) { menu.open = false; find("summary", menu).focus(); }
    });
  }
})();
