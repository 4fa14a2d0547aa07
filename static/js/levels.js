// The levels of a criterion: rows that are not used yet are hidden, "Add" shows the next, "Remove" closes the gap.
(() => {
  "use strict";
  const LEAST = 2;
  const ready = (table) => {
    const rows = [...table.querySelectorAll("[data-level]")];
    const add = table.querySelector("[data-add]");
    const fields = (row) => [...row.querySelectorAll("input")];
    const used = (row) => fields(row).some((field) => field.value.trim());
    let shown = Math.max(LEAST, rows.findLastIndex(used) + 1);
    const show = () => {
      rows.forEach((row, place) => {
        row.hidden = place >= shown;
        row.querySelector("[data-remove]").hidden = shown <= LEAST;
      });
      add.hidden = shown >= rows.length;
    };
    add.addEventListener("click", () => {
      const [before, next] = rows.slice(shown - 1).map((row) => fields(row)[0]);
      shown += 1;
      show();
      if (/^-?\d+$/.test(before.value.trim()) && !next.value) next.value = String(Number(before.value) + 1);
      next.focus();
    });
    rows.forEach((row, place) => row.querySelector("[data-remove]").addEventListener("click", () => {
      rows.slice(place, shown).forEach((one, step) => {
        const after = place + step + 1 < shown ? fields(rows[place + step + 1]) : [];
        fields(one).forEach((field, column) => { field.value = after[column] ? after[column].value : ""; });
      });
      shown -= 1;
      show();
      fields(rows[Math.min(place, shown - 1)])[0].focus();
    }));
    show();
  };
  const start = () => document.querySelectorAll("[data-levels]").forEach(ready);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
