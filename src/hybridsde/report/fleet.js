// Sorts the table of a fleet by any column, and finds members by name.
"use strict";
(() => {
  document.documentElement.classList.remove("dead");
  const table = document.getElementById("fleet"), body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, k) => row.cells[k].dataset.v;

  function sort(k) {
    const rising = heads[k].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head) => head.setAttribute("aria-sort", "none"));
    heads[k].setAttribute("aria-sort", rising ? "ascending" : "descending");
    const collator = new Intl.Collator(undefined, { numeric: true });
    const rows = [...body.rows];
    rows.sort((one, other) => {
      const a = value(one, k), b = value(other, k);
      if (a === "" || b === "") return (a === "") - (b === "");   // nothing comes last
      const order = k && !isNaN(a) && !isNaN(b) ? a - b : collator.compare(a, b);
      return rising ? order : -order;
    });
    body.replaceChildren(...rows);
  }

  heads.forEach((head, k) => head.firstElementChild.addEventListener("click", () => sort(k)));
  const find = document.getElementById("find");
  find.addEventListener("input", () => {
    const part = find.value.toLowerCase();
    for (const row of body.rows) row.hidden = !value(row, 0).toLowerCase().includes(part);
  });
})();
