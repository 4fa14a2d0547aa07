// The review screen shows items in place, so that going back may lead to this page without loading another: what is shown
// then belongs to another address.
(() => {
  "use strict";
  const at = window.location.pathname;
  window.addEventListener("popstate", () => { if (window.location.pathname !== at) window.location.reload(); });
})();
