// The next card is there already: it is fetched while the person reads, and shown as soon as the server has taken the
// decision. A refusal brings the card back as it was; without a connection everything stays and is sent later.
(() => {
  "use strict";
  const SENT = new Set(["rating", "skip", "flag", "escalate"]);
  const SOON = 5000;
  const PARTS = ["header.top", "main", ".bar", "#help"];
  const form = () => document.getElementById("rating");
  let ahead = null; // { path, page }
  let busy = false;
  let waiting = null; // the form to be sent again when there is a connection
  let timer = 0;
  let at = form() ? form().dataset.item : window.location.pathname; // the address of what is shown

  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  const fetchAhead = () => {
    ahead = null;
    if (!form()) return;
    fetch(form().dataset.ahead, { redirect: "error" })
      .then((reply) => (reply.status === 200 ? reply.text() : null))
      .then((text) => {
        const page = text && parse(text);
        const next = page && page.getElementById("rating");
        if (next) ahead = { path: next.dataset.item, page };
      })
      .catch(() => { ahead = null; })
      .finally(() => { if (form()) form().toggleAttribute("data-ready", true); });
  };
  const notices = (texts) => {
    const box = document.getElementById("messages");
    box.replaceChildren(...texts.map((text) => {
      const line = document.createElement("p");
      line.className = "notice page";
      line.textContent = text;
      return line;
    }));
  };
  const show = (page) => {
    PARTS.forEach((part) => {
      const [now, next] = [document.querySelector(part), page.querySelector(part)];
      if (now && next) now.replaceWith(document.adoptNode(next));
    });
    document.title = page.title;
    window.scrollTo(0, 0);
    document.dispatchEvent(new CustomEvent("concord:card"));
    const question = document.querySelector("main h1"); // read aloud to who does not see it
    question.tabIndex = -1;
    question.focus({ preventScroll: true });
  };
  const onward = (told) => {
    if (!ahead || ahead.path !== told.next) { window.location.assign(told.next); return; }
    const { path, page } = ahead;
    const head = parse(told.head).querySelector("header.top");
    show(page);
    if (head) document.querySelector("header.top").replaceWith(document.adoptNode(head));
    document.querySelector("header.top form input[name=next]").value = path;
    const undo = document.getElementById("undo");
    // The card was made before the last step, so what it says of undoing is one step old.
    if (told.undo) undo.setAttribute("action", told.undo); else undo.removeAttribute("action");
    document.querySelector("[data-undo]").hidden = !told.undo;
    at = path;
    window.history.pushState({}, "", path);
    notices(told.says);
    fetchAhead();
  };
  const taken = async (sent, reply) => {
    if (reply.redirected && new URL(reply.url).pathname.startsWith("/login/")) {
      document.dispatchEvent(new CustomEvent("concord:log-in", { detail: sent }));
      return;
    }
    if (reply.headers.get("Content-Type")?.startsWith("application/json")) {
      const told = await reply.json();
      if (!told.refused) document.dispatchEvent(new CustomEvent("concord:sent", { detail: form().dataset.store }));
      onward(told);
    } else if (reply.status === 409) {
      const next = ahead;
      show(parse(await reply.text()));
      ahead = next;
    } else if (reply.status === 403 && !document.dispatchEvent(new CustomEvent("concord:renew", { detail: sent, cancelable: true }))) {
      notices([]); // somebody logged in again in another window: it is sent with what this one needs now
    } else if (reply.status < 500) {
      notices([form().dataset.refused]);
    } else {
      later(sent, form().dataset.failing);
    }
  };
  // No browser tells when a server is back, so it is asked now and then; a decision that arrives twice is one.
  const later = (sent, says) => {
    waiting = sent;
    notices([says]);
    clearTimeout(timer);
    timer = setTimeout(again, SOON);
  };
  const send = (sent) => {
    if (busy) return;
    busy = true;
    waiting = null;
    clearTimeout(timer);
    const body = new FormData(sent);
    document.dispatchEvent(new CustomEvent("concord:sending"));
    fetch(sent.action, { method: "POST", body, headers: { Accept: "application/json" } })
      .then((reply) => taken(sent.id, reply))
      .catch(() => later(sent.id, form().dataset.offline))
      .finally(() => { busy = false; });
  };
  const again = () => { const other = waiting && document.getElementById(waiting); if (other) send(other); };

  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || !SENT.has(event.target.id)) return;
    event.preventDefault();
    send(event.target);
  });
  document.addEventListener("concord:again", (event) => { waiting = event.detail; again(); });
  window.addEventListener("online", again);
  // Back and forward load the page of their item anew; links within the card, to a passage, stay in it.
  window.addEventListener("popstate", () => { if (window.location.pathname !== at) window.location.reload(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });
  if (form() && window.location.pathname !== at) window.history.replaceState({}, "", at); // where the queue's address showed it
  fetchAhead();
})();
