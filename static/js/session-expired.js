// A session that ended while somebody was typing: they log in again here, nothing is lost, and what they sent is sent.
// Where they did so in another window, the forms of this one get the new session's token.
(() => {
  "use strict";
  const dialog = () => document.getElementById("log-in");
  const PATIENCE = 30000; // refused again so soon after a new token, it is not for the token
  let sent = "";
  let last = -PATIENCE;

  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  const page = (url, options) => fetch(url, options).then(async (reply) => ({ reply, found: parse(await reply.text()) }));
  const atLogIn = (reply) => new URL(reply.url).pathname === dialog().dataset.url;
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
    last = performance.now();
    const { reply, found } = await page(document.getElementById("rating").dataset.item);
    if (atLogIn(reply)) { open(); return; }
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
    const wrong = atLogIn(reply) && found.querySelector("main form input[name=username]");
    dialog().querySelector("[data-wrong]").hidden = !wrong;
    if (wrong) place(found); else renewed();
  });
  document.addEventListener("concord:log-in", (event) => { sent = event.detail || ""; open(); });
  document.addEventListener("concord:renew", (event) => {
    if (performance.now() - last < PATIENCE) return;
    event.preventDefault();
    sent = event.detail;
    renewed();
  });
  document.addEventListener("concord:unsaved", async (event) => {
    // A draft that was not taken: there is no connection, the session is over, or it is another one.
    if (event.detail === 403) { if (performance.now() - last >= PATIENCE) renewed(); return; }
    const item = document.getElementById("rating")?.dataset.item;
    const reply = item && navigator.onLine ? await fetch(item, { method: "HEAD" }).catch(() => null) : null;
    if (reply && atLogIn(reply)) open();
  });
})();
