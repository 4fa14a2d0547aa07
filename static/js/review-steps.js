// Criteria come one after the other: shows the current one, keeps the summary above it, moves on after a choice.
// A criterion that is rated by its parts has them beside the answer; digits decide the one that has the focus.
(() => {
  "use strict";
  const form = () => document.getElementById("rating");
  const fields = () => [...form().querySelectorAll("fieldset[data-metric]")];
  const steps = () => [...form().querySelectorAll("[data-step]")];
  const partsOf = (field) => document.querySelector(`[data-parts="${field.dataset.metric}"]`);
  let current = 0;

  const cannot = (field) => field.querySelector("[data-cannot]");
  // The parts to be decided: those that are offered and the missed ones that were written down.
  const written = (part) => "part" in part.dataset || part.querySelector("input[type=text]").value.trim();
  const partsIn = (field) => [...partsOf(field).querySelectorAll("[data-part], [data-added]")].filter(written);
  const undecided = (field) => partsIn(field).find((part) => !part.querySelector("input:checked"));
  const decided = (field) => {
    const all = partsIn(field);
    return { done: all.filter((part) => part.querySelector("input:checked")).length, all: all.length };
  };
  const value = (field) => {
    const refused = cannot(field);
    if (refused && refused.checked) return refused.dataset.short;
    if ("byParts" in field.dataset) {
      const { done, all } = decided(field);
      const empty = partsOf(field).querySelector('input[type="hidden"][value="none"]');
      return done === all && (all > 0 || empty) ? `${done}/${all}` : "";
    }
    const number = field.querySelector("input[type=number]");
    if (number && number.value) return number.validity.valid ? number.value : "";
    const chosen = field.querySelector("input:checked");
    return chosen ? chosen.closest("label").querySelector("b").textContent : "";
  };
  const refresh = () => {
    const told = form().querySelector("[data-announce]");
    if (told) told.textContent = "";
    fields().forEach((field, i) => {
      const entered = value(field);
      steps()[i].querySelector("[data-entered]").textContent = entered || "–";
      steps()[i].classList.toggle("filled", Boolean(entered));
      if (entered) field.removeAttribute("aria-invalid");
      const says = field.querySelector("[data-chosen]");
      const level = field.querySelector(".level:has(:checked) span");
      if (says) says.textContent = level ? level.textContent : "";
      const why = field.querySelector("[data-why]");
      if (why) why.hidden = !cannot(field).checked;
      const count = field.querySelector("[data-decided]");
      if (count) { const { done, all } = decided(field); count.textContent = `${done}/${all} ${form().dataset.decided}`; }
    });
  };
  const openPart = (field) => undecided(field) || partsIn(field)[0] || partsOf(field).querySelector("[data-added]");
  const focusPart = (part) => {
    const group = part.closest("details");
    partsOf(fields()[current]).querySelectorAll("details[open]").forEach((other) => { other.open = other === group; });
    if (group) group.open = true;
    const field = part.querySelector("input:checked") || (written(part) && part.querySelector("input[type=radio]")) || part.querySelector("input");
    field.focus({ preventScroll: true });
    part.scrollIntoView({ block: "nearest" });
  };
  // The bar is in sight wherever one reads, and reading goes on there; with little height it scrolls like everything.
  const inPlace = () => ({ preventScroll: getComputedStyle(form().closest(".bar")).position === "sticky" });
  const go = (index, focus = true) => {
    const all = fields();
    current = Math.min(Math.max(index, 0), all.length - 1);
    all.forEach((field, i) => { field.hidden = i !== current; });
    steps().forEach((step, i) => step.setAttribute("aria-current", i === current ? "step" : "false"));
    if (!focus) return;
    const field = all[current];
    const part = "byParts" in field.dataset && !cannot(field).checked ? openPart(field) : null;
    if (part) focusPart(part);
    else {
      // The whole criterion rather than its first level: a ring around "1" would look like a suggestion.
      field.tabIndex = -1;
      (field.querySelector("input:checked, input[type=number]") || field).focus(inPlace());
    }
  };
  const missing = () => fields().findIndex((field) => !value(field));
  const advance = () => {
    const next = fields().findIndex((field, i) => i > current && !value(field));
    const any = next >= 0 ? next : missing();
    if (any >= 0) go(any);
  };
  const choose = (radio) => {
    radio.checked = true;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const onPart = (part) => {
    const field = fields().find((one) => one.dataset.metric === part.closest("[data-parts]").dataset.parts);
    current = fields().indexOf(field);
    const later = undecided(field);
    if (later) { go(current, false); focusPart(later); } else if (value(field)) advance();
  };
  const digit = (key) => {
    const field = fields()[current];
    if ("byParts" in field.dataset) {
      const here = document.activeElement.closest("fieldset.part");
      const part = here && partsOf(field).contains(here) ? here : openPart(field);
      const verdict = part && part.querySelector(`input[data-digit="${key}"]`);
      if (verdict) { if (cannot(field).checked) cannot(field).checked = false; choose(verdict); onPart(part); }
      return;
    }
    const number = field.querySelector("input[type=number]");
    if (number) { // the first digit of the number; the next ones are typed into the field
      number.value = key;
      number.dispatchEvent(new Event("input", { bubbles: true }));
      number.focus(inPlace());
      return;
    }
    const radio = field.querySelector(`input[data-digit="${key}"]`);
    if (radio) { choose(radio); radio.focus(inPlace()); advance(); }
  };
  const refuse = () => {
    const field = fields()[current];
    const box = cannot(field);
    box.checked = box.type === "radio" ? true : !box.checked;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    if (box.checked) field.querySelector("[data-why]").focus(inPlace());
  };
  const init = () => {
    if (!form()) return;
    form().noValidate = true; // a browser cannot point at a number that is wrong on a criterion that is not shown
    refresh();
    const wrong = fields().findIndex((field) => field.hasAttribute("aria-invalid"));
    go(wrong >= 0 ? wrong : Math.max(missing(), 0), false);
  };

  // One line for a missed claim is there; once it is used, the next one follows.
  const MOST_ADDED = 20;
  const another = (text) => {
    const line = text.closest("[data-added]");
    const lines = [...line.parentElement.querySelectorAll("[data-added]")];
    if (!text.value.trim() || line !== lines.at(-1) || lines.length >= MOST_ADDED) return;
    const next = line.cloneNode(true);
    next.querySelectorAll("input").forEach((input) => {
      input.name = input.name.replace(/\d+$/, (place) => String(Number(place) + 1));
      if (input.type === "text") input.value = ""; else input.checked = false;
    });
    line.after(next);
  };

  const mine = (event) => form() && (event.target.form === form() || form().contains(event.target));
  document.addEventListener("change", (event) => { if (mine(event)) refresh(); });
  document.addEventListener("input", (event) => {
    if (!mine(event)) return;
    if (event.target.matches(".parts [data-added] input[type=text]")) another(event.target);
    refresh();
  });
  document.addEventListener("click", (event) => {
    if (!form()) return;
    const step = event.target.closest("[data-step]");
    if (step) { go(steps().indexOf(step)); return; }
    const more = event.target.closest("[data-more]");
    if (more) more.setAttribute("aria-expanded", String(more.getAttribute("aria-expanded") !== "true"));
    // A pointer press moves on, but where only the chosen level is told in words; arrow keys between radios are clicks
    // without a pointer and stay.
    const read = () => getComputedStyle(form().querySelector("[data-chosen]")).display !== "none";
    if (event.detail > 0 && event.target.matches("#rating fieldset[data-metric] input[type=radio]:not([data-cannot])") && !read()) advance();
    if (event.detail > 0 && event.target.matches(".part[data-part] input[type=radio]")) onPart(event.target.closest(".part"));
  });
  document.addEventListener("concord:step", (event) => go(current + event.detail));
  document.addEventListener("concord:onward", advance);
  document.addEventListener("concord:digit", (event) => digit(event.detail));
  document.addEventListener("concord:cannot", refuse);
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "rating") return;
    const open = missing();
    if (open < 0) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const leadsOn = document.activeElement.matches("[data-why]"); // Enter there is no attempt to submit
    go(open);
    if (leadsOn) return;
    fields()[open].setAttribute("aria-invalid", "true");
    form().querySelector("[data-announce]").textContent = `${form().dataset.missing} ${fields()[open].dataset.title}`;
    fields()[open].querySelector("input[type=number]")?.reportValidity();
  });
  document.addEventListener("concord:card", init);
  init();
})();
