// Menus are <details data-menu>: close them on Escape and when something else is pressed.
(() => {
  "use strict";
  const open = () => document.querySelectorAll("details[data-menu][open]");
  document.addEventListener("click", (event) => {
    open().forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    open().forEach((menu) => {
      const inside = menu.contains(document.activeElement);
      menu.open = false;
      if (inside) menu.querySelector("summary").focus({ preventScroll: true });
    });
  });
})();
