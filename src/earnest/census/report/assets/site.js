"use strict";
// Search and sorting for tables. Without this script the tables are whole, in the order of the page.

for (const box of document.querySelectorAll(".finder")) {
  const input = box.querySelector("input");
  const count = box.querySelector(".count");
  const table = document.getElementById(input.dataset.finds);
  const rows = Array.from(table.tBodies[0].rows, (row) => [row, row.textContent.toLowerCase()]);
  const look = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown += 1;
    }
    count.textContent = words.length ? `${shown} of ${rows.length}` : `${rows.length}`;
  };
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 60);
  });
  box.hidden = false;
  look();
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const value = (row) => row.cells[column].textContent.trim();
      const number = (row) => Number.parseFloat(value(row));
      const order = "number" in head.dataset
        ? (a, b) => (Number.isNaN(number(a)) ? 1 : 0) - (Number.isNaN(number(b)) ? 1 : 0) || (down ? number(b) - number(a) : number(a) - number(b))
        : (a, b) => value(a).localeCompare(value(b)) * (down ? -1 : 1);
      body.append(...Array.from(body.rows).sort(order));
    });
  });
}

// A link to a tool opens what it leads to.
const open = () => {
  const found = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (found && found.matches(".tool")) for (const inner of found.querySelectorAll("details")) inner.open = true;
};
window.addEventListener("hashchange", open);
open();
