// Keys of the review screen, by the key's place on the keyboard (event.code), so that a Korean layout changes nothing.
// Ignored while typing, while an input method composes, with modifiers, and when switched off.
(() => {
  "use strict";
  const form = document.getElementById("rating");
  if (!form) return;
  const help = document.getElementById("help");
  const off = help.querySelector("[data-keys-off]");
  const STORE = "concord.keys-off";
  off.checked = localStorage.getItem(STORE) === "1";
  off.addEventListener("change", () => localStorage.setItem(STORE, off.checked ? "1" : "0"));

  const typing = (target) => target.matches("textarea, select, input:not([type=radio], [type=checkbox])");
  const send = (id) => { const other = document.getElementById(id); if (other) other.requestSubmit(); };
  const tell = (name, detail) => form.dispatchEvent(new CustomEvent(`concord:${name}`, { detail }));
  const popup = (key) => {
    const found = document.querySelector(`details[data-key="${key}"]`);
    if (!found) return;
    found.open = !found.open;
    const first = found.querySelector("textarea, input");
    if (found.open && first) first.focus({ preventScroll: true });
  };
  const raw = () => {
    const button = document.querySelector("[data-raw]");
    const showSource = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(showSource));
    document.querySelector("[data-rendered]").hidden = showSource;
    document.querySelector("[data-source]").hidden = !showSource;
  };
  const passage = (by) => {
    const all = [...document.querySelectorAll(".ctx")];
    if (!all.length) return;
    const at = all.findIndex((one) => one.classList.contains("on"));
    const next = all[(at + by + all.length + (at < 0 && by < 0 ? 1 : 0)) % all.length];
    all.forEach((one) => one.classList.toggle("on", one === next));
    next.scrollIntoView({ block: "nearest" });
  };

  const ACTIONS = {
    KeyJ: () => tell("step", 1), KeyK: () => tell("step", -1),
    KeyS: () => send("skip"), KeyZ: () => send("undo"),
    KeyF: () => popup("f"), KeyC: () => popup("c"), KeyA: () => popup("a"),
    KeyM: raw, BracketLeft: () => passage(-1), BracketRight: () => passage(1),
    Slash: () => help.showModal(),
  };
  document.querySelector("[data-raw]").addEventListener("click", raw);
  document.querySelectorAll("[data-opens]").forEach((button) => {
    button.addEventListener("click", () => document.getElementById(button.dataset.opens).showModal());
  });

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.code === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (typing(event.target) || help.open || event.target.closest(".popup > div")) return;
    if (event.code === "Enter" || event.code === "NumpadEnter") {
      // Buttons, links and summaries keep their own Enter; a held key is one press.
      if (event.target.matches("button, a, summary")) return;
      event.preventDefault();
      if (!event.repeat) form.requestSubmit(form.querySelector("[data-submit]"));
      return;
    }
    if (off.checked || event.repeat) return;
    const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
    if (digit && !event.shiftKey) { event.preventDefault(); tell("digit", digit[1]); return; }
    const action = ACTIONS[event.code];
    if (!action || (event.shiftKey && event.code !== "Slash")) return;
    event.preventDefault();
    action();
  });
})();
