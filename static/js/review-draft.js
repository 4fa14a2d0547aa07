// Keeps what was entered: half a second after a change and when the page is left, on the server.
(() => {
  "use strict";
  const form = document.getElementById("rating");
  if (!form) return;
  const state = form.querySelector("[data-draft-state]");
  let timer = 0;
  let changed = false;
  let sent = false;

  const save = (leaving) => {
    clearTimeout(timer);
    if (!changed || sent) return;
    changed = false;
    const body = new FormData(form);
    if (leaving) { navigator.sendBeacon(form.dataset.draft, body); return; }
    state.textContent = form.dataset.saving;
    fetch(form.dataset.draft, { method: "POST", body, redirect: "error" })
      .then((reply) => { state.textContent = reply.ok ? form.dataset.saved : form.dataset.unsaved; })
      .catch(() => { changed = true; state.textContent = form.dataset.unsaved; });
  };
  const later = () => { changed = true; clearTimeout(timer); timer = setTimeout(save, 500); };

  form.addEventListener("change", later);
  form.addEventListener("input", later);
  form.addEventListener("submit", (event) => { if (!event.defaultPrevented) { sent = true; clearTimeout(timer); } });
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") save(true); });
})();
