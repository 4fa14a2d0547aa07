// Passages beside an answer: a search that leaves those with the words, and a citation such as [2] leads to its passage.
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
  const link = () => document.querySelectorAll(".answer:not(.raw)").forEach((answer) => texts(answer).forEach((text) => {
    if (text.parentElement.closest("a, code")) return;
    const cited = /\[(\d{1,3})\]/g;
    let rest = text;
    for (let found = cited.exec(text.data); found; found = cited.exec(rest.data)) {
      if (!document.getElementById(`passage-${found[1]}`)) continue;
      const place = rest.splitText(found.index);
      rest = place.splitText(found[0].length);
      const to = document.createElement("a");
      to.href = `#passage-${found[1]}`;
      place.replaceWith(to);
      to.append(place);
      cited.lastIndex = 0;
    }
  }));
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
  document.addEventListener("concord:card", link);
  link();
})();
