// The reveal: Enter keeps, but never the Enter that is still held or repeated from the screen before; a key of the
// person's choice opens the change.
(() => {
  "use strict";
  const form = document.getElementById("reveal");
  if (!form) return;
  const SETTLE = 400;
  const shown = performance.now();
  const keep = form.querySelector("[data-keep]");
  const change = form.querySelector("[data-change]");
  const keys = JSON.parse(form.dataset.keys);
  const VALUES = /^(value|part|added|added-text):/;
  const first = JSON.stringify([...new FormData(form)].filter(([name]) => VALUES.test(name)));
  // A page that comes back with an error shows the change that was refused: Enter must not keep the first rating then.
  const changed = () => form.hasAttribute("data-changed") || JSON.stringify([...new FormData(form)].filter(([name]) => VALUES.test(name))) !== first;
  const emphasise = () => {
    if (!change) return;
    const now = changed();
    change.classList.toggle("primary", now);
    keep.classList.toggle("primary", !now);
  };
  const typing = (target) => target.matches("textarea, select, input:not([type=radio], [type=checkbox])");

  emphasise();
  // A refused change came from an address that cannot be opened: loading again and logging in lead to the item.
  if (window.location.pathname !== form.dataset.item) window.history.replaceState({}, "", form.dataset.item);
  form.addEventListener("change", emphasise);
  form.addEventListener("submit", (event) => {
    if (performance.now() - shown < SETTLE) event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.altKey) return;
    const enter = event.code === "Enter" || event.code === "NumpadEnter";
    const fromField = enter && (event.ctrlKey || event.metaKey);
    if ((event.ctrlKey || event.metaKey) && !fromField) return;
    if (event.code === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (enter) {
      if (event.repeat) { event.preventDefault(); return; }
      if (!fromField && event.target.matches("button, a, summary, textarea")) return;
      event.preventDefault();
      if (performance.now() - shown >= SETTLE) form.requestSubmit(changed() && change ? change : keep);
      return;
    }
    if (typing(event.target) || event.repeat || form.hasAttribute("data-keys-off")) return;
    if (keys[event.code] === "change") {
      // The key leads to the first criterion in difference, pressed again to the next one.
      const all = [...form.querySelectorAll('details[data-key="change"]')];
      const here = all.findIndex((one) => one.open && one.closest("[data-comparison]").contains(document.activeElement));
      const details = all[(here + 1) % all.length];
      if (!details) return;
      event.preventDefault();
      details.open = true;
      (details.querySelector("input:checked") || details.querySelector("input")).focus();
      return;
    }
    const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
    const open = event.target.closest("[data-comparison]") || form.querySelector("[data-comparison]");
    if (digit && open && open.querySelector("details").open) {
      const scope = event.target.closest("fieldset.part") || open.querySelector("details");
      const radio = scope.querySelector(`input[data-digit="${digit[1]}"]`);
      if (!radio) return;
      event.preventDefault();
      radio.checked = true;
      radio.focus();
      emphasise();
    }
  });
})();
