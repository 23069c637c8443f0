// A click on the head of a column, or Enter, sorts the rows of a long table by that column, and again in the
// other direction. Numbers are compared as numbers, and empty cells come last.
document.addEventListener("DOMContentLoaded", () => {
  const text = (row, column) => row.cells[column].textContent.trim().replace(/^\[/, "").replace(/,(?=\d{3})/g, "");
  const before = (a, b) => a.localeCompare(b, undefined, { numeric: true });
  for (const table of document.querySelectorAll("table")) {
    if (!table.tHead || !table.tBodies[0] || table.tBodies[0].rows.length < 6) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.style.cursor = "pointer";
      head.title = "Sort by this column";
      head.tabIndex = 0;
      const sort = () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows].map((row) => [text(row, column), row]);
        rows.sort(([a], [b]) => (!a - !b) || before(a, b) * (ascending ? 1 : -1));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    });
  }
});
