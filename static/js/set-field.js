// A button such as <button type="button" data-set="size" value="20"> fills a field of its form.
(() => {
  "use strict";
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-set]");
    const field = button?.form?.elements[button.dataset.set];
    if (!field) return;
    field.value = button.value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
    field.focus();
  });
})();
