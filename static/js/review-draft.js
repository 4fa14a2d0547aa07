// Keeps what was entered: in this browser at once, on the server half a second after a change and when the page is
// left. What the server did not get comes back from the browser, whatever happened in between. Typing keeps the
// reservation too; whoever only reads is asked before it ends.
(() => {
  "use strict";
  const SOON = 120;
  const AGAIN = 15000;
  const form = () => document.getElementById("rating");
  const BOOKKEEPING = new Set(["csrfmiddlewaretoken", "form_key", "active_ms"]);
  let timer = 0;
  let lapsing = 0;
  let changed = false;
  let underway = null; // the request that is saving, so that it can be called off

  const entries = () => [...new FormData(form())].filter(([name]) => !BOOKKEEPING.has(name));
  const keepHere = () => {
    try { localStorage.setItem(form().dataset.store, JSON.stringify(entries())); } catch { /* storage is full or off: the server still has it */ }
  };
  const forget = (store) => localStorage.removeItem(store);
  const say = (text) => { form().querySelector("[data-draft-state]").textContent = text; };
  const save = (leaving) => {
    clearTimeout(timer);
    if (!form() || !changed) return;
    changed = false;
    const { draft, store, saved, unsaved, saving } = form().dataset;
    const body = new FormData(form());
    if (leaving) { navigator.sendBeacon(draft, body); return; }
    say(saving);
    underway = new AbortController();
    fetch(draft, { method: "POST", body, redirect: "error", signal: underway.signal })
      .then((reply) => {
        reply.body?.cancel(); // an answer that nobody reads and the browser does not keep holds its connection
        if (!form() || form().dataset.store !== store) return;
        say(reply.ok ? saved : unsaved);
        if (reply.ok && !changed) forget(store);
        if (reply.ok) watch();
        if (!reply.ok) changed = true;
        if (reply.status === 403) document.dispatchEvent(new CustomEvent("concord:unsaved", { detail: 403 }));
        if (reply.status >= 500) timer = setTimeout(save, AGAIN);
      })
      .catch((error) => {
        if (error.name === "AbortError" || !form() || form().dataset.store !== store) return;
        changed = true;
        say(unsaved);
        timer = setTimeout(save, AGAIN);
        document.dispatchEvent(new CustomEvent("concord:unsaved"));
      })
      .finally(() => { underway = null; });
  };
  const restore = () => {
    let kept = null;
    try { kept = JSON.parse(localStorage.getItem(form().dataset.store)); } catch { kept = null; }
    if (!Array.isArray(kept)) return;
    const given = new Map(kept);
    for (let i = 0; i < form().elements.length; i += 1) { // grows: a filled line for a missed claim brings the next one
      const field = form().elements[i];
      if (!field.name || BOOKKEEPING.has(field.name)) continue;
      if (field.type === "radio" || field.type === "checkbox") field.checked = given.get(field.name) === field.value;
      else if (field.type !== "hidden" && given.has(field.name)) {
        field.value = given.get(field.name);
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    say(form().dataset.restored);
    changed = true;
    form().dispatchEvent(new Event("change", { bubbles: true }));
  };
  const watch = () => {
    clearTimeout(lapsing);
    const seconds = Number(form().dataset.lease);
    form().querySelector("[data-lapsing]").hidden = true;
    lapsing = setTimeout(() => { if (form()) form().querySelector("[data-lapsing]").hidden = false; }, Math.max(0, seconds - SOON) * 1000);
  };
  const init = () => { changed = false; clearTimeout(timer); if (form()) { restore(); watch(); } };
  const later = (event) => {
    if (!form() || event.target.form !== form()) return;
    changed = true;
    keepHere();
    clearTimeout(timer);
    timer = setTimeout(save, 500);
  };

  document.addEventListener("change", later);
  document.addEventListener("input", later);
  // What is sent now needs no draft: one that came to the server after it would be refused.
  document.addEventListener("submit", () => clearTimeout(timer));
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-keep-item]")) return;
    const body = new FormData();
    body.set("csrfmiddlewaretoken", form().elements.csrfmiddlewaretoken.value);
    fetch(form().dataset.extend, { method: "POST", body, redirect: "error" }).then((reply) => {
      reply.body?.cancel();
      if (reply.ok) watch();
    });
  });
  // A draft that arrives behind the rating would be refused; this browser has it until the rating is taken.
  document.addEventListener("concord:sending", () => {
    clearTimeout(timer);
    if (underway) { underway.abort(); changed = true; }
  });
  document.addEventListener("concord:sent", (event) => { forget(event.detail); changed = false; clearTimeout(timer); });
  document.addEventListener("concord:save", () => save(false));
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") save(true); });
  window.addEventListener("online", () => save(false));
  document.addEventListener("concord:card", init);
  init();
})();
