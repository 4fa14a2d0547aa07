// A case: digits choose a level of the criterion that has the focus, else of the first one in dispute.
(() => {
  "use strict";
  const form = document.getElementById("decide");
  if (!form) return;
  const typing = (target) => target.matches("textarea, select, input:not([type=radio], [type=checkbox])");
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.code === "Escape" && typing(event.target)) { event.target.blur(); return; }
    const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
    if (!digit || typing(event.target) || event.repeat) return;
    const here = event.target.closest(".comparison") || form.querySelector("[data-apart]") || form.querySelector(".comparison");
    const radio = here && here.querySelector(`input[data-digit="${digit[1]}"]`);
    if (!radio) return;
    event.preventDefault();
    here.querySelector("details").open = true;
    radio.checked = true;
    radio.focus();
  });
})();
