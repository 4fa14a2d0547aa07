// Keys of the review screen, by the key's place on the keyboard (event.code), so that a Korean layout changes nothing.
// Which key does what is the person's own choice and comes with the page. Ignored while typing, while an input method
// composes, with modifiers, and when switched off.
(() => {
  "use strict";
  const form = () => document.getElementById("rating");
  const help = () => document.getElementById("help");
  const typing = (target) => target.matches("textarea, select, input:not([type=radio], [type=checkbox])");
  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(`concord:${name}`, { detail }));
  const send = (id) => { const other = document.getElementById(id); if (other && other.getAttribute("action")) other.requestSubmit(); };
  let back = null; // what had the focus before a key opened a window: Escape leads there again
  const toggle = (key) => {
    const found = document.querySelector(`details[data-key="${key}"]`);
    if (!found) return;
    found.open = !found.open;
    const first = found.querySelector("textarea, input");
    if (found.open && first) { back = document.activeElement; first.focus({ preventScroll: true }); }
    if (found.open && !first) found.scrollIntoView({ block: "nearest" });
  };
  const leave = (field) => {
    if (back || !field.closest("[data-menu]")) field.blur(); // a menu that was opened by hand gets the focus itself
    back?.focus({ preventScroll: true });
    back = null;
  };
  const raw = () => {
    const button = document.querySelector("[data-raw]");
    const showSource = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(showSource));
    document.querySelectorAll("[data-rendered]").forEach((one) => { one.hidden = showSource; });
    document.querySelectorAll("[data-source]").forEach((one) => { one.hidden = !showSource; });
  };
  const passage = (by) => {
    const all = [...document.querySelectorAll(".ctx:not([hidden])")];
    if (!all.length) return;
    const at = all.findIndex((one) => one.classList.contains("on"));
    const next = all[(at + by + all.length + (at < 0 && by < 0 ? 1 : 0)) % all.length];
    all.forEach((one) => one.classList.toggle("on", one === next));
    next.scrollIntoView({ block: "nearest" });
  };
  const ACTIONS = {
    next: () => tell("step", 1), previous: () => tell("step", -1), cannot_judge: () => tell("cannot"),
    skip: () => send("skip"), undo: () => send("undo"), raw,
    flag: () => toggle("flag"), escalate: () => toggle("escalate"), comment: () => toggle("comment"),
    suggest: () => toggle("suggest"), rubric: () => toggle("rubric"), reference: () => toggle("reference"),
    passage_before: () => passage(-1), passage_after: () => passage(1),
  };
  const actionOf = (code) => {
    const keys = JSON.parse(form().dataset.keys);
    return Object.hasOwn(keys, code) && Object.hasOwn(ACTIONS, keys[code]) ? ACTIONS[keys[code]] : null;
  };

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-raw]")) raw();
    const opener = event.target.closest("[data-opens]");
    if (opener) document.getElementById(opener.dataset.opens).showModal();
  });
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (!box.matches("[data-switch-keys]")) return;
    const body = new FormData();
    body.set("csrfmiddlewaretoken", form().elements.csrfmiddlewaretoken.value);
    body.set("off", box.checked ? "1" : "0");
    fetch(box.dataset.switchKeys, { method: "POST", body }).then((reply) => reply.body?.cancel());
    form().toggleAttribute("data-keys-off", box.checked);
  });
  document.addEventListener("keydown", (event) => {
    if (!form() || event.isComposing || event.keyCode === 229 || event.altKey) return;
    const enter = event.code === "Enter" || event.code === "NumpadEnter";
    if (enter && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
      // Sends what one is in, from inside a field too: the comment with the rating, or the question to the lead.
      event.preventDefault();
      const inside = event.target.form?.id ? event.target.form : form();
      if (!event.repeat) inside.requestSubmit();
      return;
    }
    if (event.ctrlKey || event.metaKey) return;
    if (event.code === "Escape" && (typing(event.target) || event.target.closest(".popup > div"))) { leave(event.target); return; }
    if (document.querySelector("dialog[open]")) return;
    const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
    // Why one cannot judge may be left open: no reason begins with a digit, so a digit rates the next criterion.
    const why = event.target.matches("[data-why]");
    if (typing(event.target) && !(enter && event.target.matches("select")) && !(digit && why)) return;
    if (event.target.closest(".popup > div")) return;
    if (enter) {
      // Buttons, links and summaries keep their own Enter; a held key is one press.
      if (event.target.matches("button, a, summary")) return;
      event.preventDefault();
      if (!event.repeat) form().requestSubmit(form().querySelector("[data-submit]"));
      return;
    }
    if (form().hasAttribute("data-keys-off") || event.repeat) return;
    if (event.code === "Slash") { event.preventDefault(); help().showModal(); return; }
    if (event.shiftKey) return;
    if (digit) { event.preventDefault(); if (why) tell("onward"); tell("digit", digit[1]); return; }
    const action = actionOf(event.code);
    if (!action) return;
    event.preventDefault();
    action();
  });
})();
