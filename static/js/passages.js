// Passages beside an answer: a search that leaves those with the words, and ends where a link leads to a passage.
(() => {
  "use strict";
  const passages = () => [...document.querySelectorAll(".ctx")];
  const texts = (node) => {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) found.push(walker.currentNode);
    return found;
  };
  const search = (field) => {
    const words = field.value.trim().toLowerCase();
    const all = passages();
    const hits = [];
    all.forEach((one) => {
      one.hidden = Boolean(words) && !one.textContent.toLowerCase().includes(words);
      if (!words || one.hidden) return;
      texts(one).filter((text) => !text.parentElement.closest("[hidden]")).forEach((text) => {
        const said = text.data.toLowerCase();
        for (let at = said.indexOf(words); at >= 0; at = said.indexOf(words, at + words.length)) {
          const range = new Range();
          range.setStart(text, at);
          range.setEnd(text, Math.min(at + words.length, text.length));
          hits.push(range);
        }
      });
    });
    if (CSS.highlights) CSS.highlights.set("found", new Highlight(...hits));
    const count = document.querySelector("[data-count]");
    count.hidden = !words;
    const left = all.filter((one) => !one.hidden).length;
    count.textContent = words ? field.dataset.found.replace("NN", left).replace("ALL", all.length) : "";
  };
  document.addEventListener("input", (event) => { if (event.target.matches("[data-find]")) search(event.target); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !event.target.matches?.("[data-find]")) return;
    event.target.value = "";
    search(event.target);
  });
  document.addEventListener("click", (event) => { // what one wants to see is not hidden by what one looked for
    const field = event.target.closest('a[href^="#passage-"]') && document.querySelector("[data-find]");
    if (field && field.value) { field.value = ""; search(field); }
  });
})();
