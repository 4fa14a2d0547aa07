// Keys of generated questions, by the key's place on the keyboard: j and k go through the questions, a accepts the one in
// focus (the first without one), r rejects it, e opens its form. Ignored while typing, composing and with modifiers.
(() => {
  "use strict";
  const all = [...document.querySelectorAll(".draft")];
  if (!all.length) return;
  const here = () => Math.max(0, all.findIndex((one) => one.contains(document.activeElement)));
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.matches("textarea, input, select")) { if (event.code === "Escape") event.target.blur(); return; }
    const step = { KeyJ: 1, KeyK: -1 }[event.code];
    if (step) { all[Math.min(all.length - 1, Math.max(0, here() + step))].focus(); return; }
    const pressed = all[here()].querySelector(`[data-key="${event.code}"]`);
    if (!pressed) return;
    event.preventDefault();
    pressed.click();
    if (event.code === "KeyE") all[here()].querySelector("textarea").focus();
  });
  if (location.hash === "#questions") all[0].focus();
})();
