// A session that ended while somebody was typing: they log in again here, nothing is lost, and what they sent is sent.
(() => {
  "use strict";
  const dialog = () => document.getElementById("log-in");
  let sent = "";

  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  const page = (url, options) => fetch(url, options).then(async (reply) => ({ reply, found: parse(await reply.text()) }));
  const place = (found) => {
    const form = found.querySelector("main form");
    form.querySelector("input[name=next]")?.remove();
    dialog().querySelector("[data-form]").replaceChildren(document.adoptNode(form));
    form.querySelector("input:not([type=hidden])").focus();
  };
  const open = async () => {
    if (dialog().open) return;
    const { found } = await page(dialog().dataset.url);
    dialog().showModal();
    place(found);
  };
  const renewed = async () => {
    // The token of the forms belongs to the old session.
    const { found } = await page(document.getElementById("rating").dataset.item);
    const token = found.querySelector("input[name=csrfmiddlewaretoken]");
    if (token) document.querySelectorAll("input[name=csrfmiddlewaretoken]").forEach((field) => { field.value = token.value; });
    dialog().close();
    document.dispatchEvent(new CustomEvent("concord:save"));
    if (sent) document.dispatchEvent(new CustomEvent("concord:again", { detail: sent }));
    sent = "";
  };
  document.addEventListener("submit", async (event) => {
    if (!dialog()?.contains(event.target)) return;
    event.preventDefault();
    const { reply, found } = await page(dialog().dataset.url, { method: "POST", body: new FormData(event.target) });
    const wrong = new URL(reply.url).pathname === dialog().dataset.url && found.querySelector("main form input[name=username]");
    dialog().querySelector("[data-wrong]").hidden = !wrong;
    if (wrong) place(found); else renewed();
  });
  document.addEventListener("concord:log-in", (event) => { sent = event.detail || ""; open(); });
  document.addEventListener("concord:unsaved", async () => {
    // A draft that was not taken: either there is no connection, or the session is over.
    const item = document.getElementById("rating")?.dataset.item;
    const reply = item && navigator.onLine ? await fetch(item, { method: "HEAD" }).catch(() => null) : null;
    if (reply && reply.redirected && new URL(reply.url).pathname === dialog().dataset.url) open();
  });
})();
