// How long the person looked: counts while the page is visible and somebody did something in the last half minute.
(() => {
  "use strict";
  const IDLE = 30000;
  const fields = () => document.querySelectorAll("[data-active]");
  let last = performance.now();
  let seen = last;
  let total = 0;
  const tick = () => {
    const now = performance.now();
    if (document.visibilityState === "visible" && now - seen < IDLE) total += now - last;
    last = now;
    fields().forEach((field) => { field.value = String(Math.round(total)); });
  };
  ["keydown", "pointerdown", "pointermove", "scroll"].forEach((name) => {
    document.addEventListener(name, () => { seen = performance.now(); }, { passive: true });
  });
  document.addEventListener("concord:card", () => { total = 0; last = seen = performance.now(); });
  setInterval(tick, 1000);
  document.addEventListener("submit", tick, true);
})();
