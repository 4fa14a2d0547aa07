// How long the person looked: counts while the page is visible and somebody did something in the last half minute. Who
// leaves a page and comes back in the same window, or loads it again, goes on where they were.
(() => {
  "use strict";
  const IDLE = 30000;
  const fields = () => document.querySelectorAll("[data-active]");
  const place = () => `concord.active.${fields()[0]?.form.action}`;
  let last = performance.now();
  let seen = last;
  let total = 0;
  const begin = () => {
    total = Number(sessionStorage.getItem(place())) || 0;
    last = seen = performance.now();
  };
  const tick = () => {
    const now = performance.now();
    if (document.visibilityState === "visible" && now - seen < IDLE) total += now - last;
    last = now;
    fields().forEach((field) => { field.value = String(Math.round(total)); });
    try { sessionStorage.setItem(place(), String(Math.round(total))); } catch { /* storage is full or off: this visit counts */ }
  };
  ["keydown", "pointerdown", "pointermove", "scroll"].forEach((name) => {
    document.addEventListener(name, () => { seen = performance.now(); }, { passive: true });
  });
  document.addEventListener("concord:card", begin);
  setInterval(tick, 1000);
  document.addEventListener("submit", tick, true);
  begin();
})();
