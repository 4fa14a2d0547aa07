// What was entered in a form that keeps no draft on the server stays in this browser until it is taken: a crash, a lost
// connection or a session that ended costs no word. A form says what it is about (data-keep); what was kept of others
// is forgotten after a week.
(() => {
  "use strict";
  const PREFIX = "concord.kept.";
  const WEEK = 7 * 24 * 3600 * 1000;
  const BOOKKEEPING = new Set(["csrfmiddlewaretoken", "form_key", "active_ms"]);
  const forms = () => [...document.querySelectorAll("form[data-keep]")];
  const key = (form) => PREFIX + form.dataset.keep;
  const read = (name) => { try { return JSON.parse(localStorage.getItem(name)); } catch { return null; } };

  const keep = (event) => {
    const form = event.target.form;
    if (!form?.dataset.keep) return;
    const entries = [...new FormData(form)].filter(([name]) => !BOOKKEEPING.has(name));
    try { localStorage.setItem(key(form), JSON.stringify({ at: Date.now(), entries })); } catch { /* storage is full or off */ }
  };
  const show = (field) => {
    const around = field.closest("details");
    if (!around) return;
    if ("menu" in around.dataset) around.toggleAttribute("data-filled", true);
    else around.open = true;
  };
  const bringBack = (form) => {
    const kept = read(key(form));
    if (!Array.isArray(kept?.entries)) return;
    const given = new Map(kept.entries);
    [...form.elements].forEach((field) => {
      if (!field.name || BOOKKEEPING.has(field.name) || ["hidden", "submit"].includes(field.type)) return;
      if (field.type === "radio" || field.type === "checkbox") {
        field.checked = given.get(field.name) === field.value;
        if (field.checked && !field.defaultChecked) show(field);
      } else if (given.has(field.name)) {
        field.value = given.get(field.name);
        if (field.value !== field.defaultValue) show(field);
      }
    });
    form.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const forgetOld = () => {
    Object.keys(localStorage).filter((name) => name.startsWith(PREFIX)).forEach((name) => {
      if (!(read(name)?.at > Date.now() - WEEK)) localStorage.removeItem(name);
    });
  };

  document.addEventListener("input", keep);
  document.addEventListener("change", keep);
  document.addEventListener("concord:sent", () => forms().forEach((form) => localStorage.removeItem(key(form))));
  document.addEventListener("concord:card", () => forms().forEach(bringBack));
  forgetOld();
  forms().forEach(bringBack);
})();
