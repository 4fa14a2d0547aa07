// Keys of the comparison screen, by the key's place on the keyboard (event.code), so that a Korean layout changes
// nothing: 1 to 5 choose, Enter saves, z goes back. Ignored while typing, while composing and with modifiers.
(() => {
  "use strict";
  const form = document.getElementById("preference");
  if (!form) return;
  const started = performance.now();
  const choices = [...form.querySelectorAll("input[name=value]")];
  form.addEventListener("submit", () => {
    form.elements.seconds.value = ((performance.now() - started) / 1000).toFixed(1);
    form.querySelector("button").disabled = true;
  });
  // Going back brings this page as it was left, with the button that a submit switched off.
  window.addEventListener("pageshow", () => { form.querySelector("button").disabled = false; });
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.matches("textarea")) { if (event.code === "Escape") event.target.blur(); return; }
    const digit = /^(?:Digit|Numpad)([1-5])$/.exec(event.code);
    if (digit) {
      const choice = choices[Number(digit[1]) - 1];
      if (!choice) return;
      choice.checked = true;
      choice.focus();
      choice.dispatchEvent(new Event("change", { bubbles: true }));
      event.preventDefault();
      return;
    }
    if (event.code === "KeyZ") { document.getElementById("back")?.click(); return; }
    if ((event.code === "Enter" || event.code === "NumpadEnter") && !event.target.matches("a, button, summary")) {
      event.preventDefault();
      if (!event.repeat) form.requestSubmit();
    }
  });
})();
