// Keys of the workbench, by the key's place on the keyboard: j and k go through the disagreements and open them, e goes to
// the text of the draft, Escape leaves it. Ignored while typing, while composing and with modifiers.
(() => {
  "use strict";
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.matches("textarea, input, select")) { if (event.code === "Escape") event.target.blur(); return; }
    const all = [...document.querySelectorAll(".difference")];
    const editor = document.getElementById("id_instruction");
    if (event.code === "KeyE" && editor) { event.preventDefault(); editor.focus(); return; }
    const step = { KeyJ: 1, KeyK: -1 }[event.code];
    if (!step || !all.length) return;
    const at = all.findIndex((one) => one.contains(document.activeElement));
    const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
    all.forEach((one) => { one.open = one === next; });
    next.querySelector("summary").focus();
  });
})();
