// Criteria come one after the other: shows the current one, keeps the summary above it, moves on after a choice.
(() => {
  "use strict";
  const form = document.getElementById("rating");
  if (!form) return;
  const fields = [...form.querySelectorAll("fieldset[data-metric]")];
  const steps = [...form.querySelectorAll("[data-step]")];
  const announce = form.querySelector("[data-announce]");
  let current = 0;

  const value = (field) => {
    const number = field.querySelector("input[type=number]");
    if (number && number.value) return number.value;
    const chosen = field.querySelector("input:checked");
    return chosen ? chosen.dataset.short || chosen.closest("label").querySelector("b").textContent : "";
  };
  const refresh = () => {
    fields.forEach((field, i) => {
      const entered = value(field);
      steps[i].querySelector("[data-entered]").textContent = entered || "–";
      steps[i].classList.toggle("filled", Boolean(entered));
      if (entered) field.removeAttribute("aria-invalid");
    });
  };
  const go = (index, focus = true) => {
    current = Math.min(Math.max(index, 0), fields.length - 1);
    fields.forEach((field, i) => { field.hidden = i !== current; });
    steps.forEach((step, i) => step.setAttribute("aria-current", i === current ? "step" : "false"));
    if (focus) {
      const field = fields[current];
      (field.querySelector("input:checked") || field.querySelector("input")).focus({ preventScroll: true });
    }
  };
  const missing = () => fields.findIndex((field) => !value(field));
  const advance = () => {
    const next = fields.findIndex((field, i) => i > current && !value(field));
    const any = next >= 0 ? next : missing();
    if (any >= 0) go(any);
  };

  form.addEventListener("change", refresh);
  form.addEventListener("input", refresh);
  form.addEventListener("click", (event) => {
    // A pointer press moves on; arrow keys between radios are clicks without a pointer and stay.
    if (event.target.matches("fieldset[data-metric] input[type=radio]") && event.detail > 0) advance();
  });
  steps.forEach((step, i) => step.addEventListener("click", () => go(i)));
  form.addEventListener("concord:step", (event) => go(current + event.detail));
  form.addEventListener("concord:digit", (event) => {
    const radio = fields[current].querySelector(`input[data-digit="${event.detail}"]`);
    if (!radio) return;
    radio.checked = true;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
    advance();
  });
  form.addEventListener("submit", (event) => {
    const open = missing();
    if (open < 0) return;
    event.preventDefault();
    go(open);
    fields[open].setAttribute("aria-invalid", "true");
    announce.textContent = `${form.dataset.missing} ${fields[open].dataset.title}`;
  });
  refresh();
  const wrong = fields.findIndex((field) => field.hasAttribute("aria-invalid"));
  go(wrong >= 0 ? wrong : Math.max(missing(), 0), false);
})();
