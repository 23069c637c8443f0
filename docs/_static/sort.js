// A click on the head of a column of a long table sorts its rows by that column, and another one in
// the other direction. Numbers, and the first numbers of intervals, are compared as numbers.
document.addEventListener("DOMContentLoaded", () => {
  const key = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = text.match(/^\[?(-?[\d,.]+)/);
    return number ? [0, parseFloat(number[1].replace(/,/g, "")), text] : [1, 0, text];
  };
  const before = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2].localeCompare(b[2]);
  for (const table of document.querySelectorAll("table")) {
    if (!table.tHead || !table.tBodies[0] || table.tBodies[0].rows.length < 6) continue;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.style.cursor = "pointer";
      head.title = "Sort by this column";
      let ascending = false;
      head.addEventListener("click", () => {
        ascending = !ascending;
        const rows = [...table.tBodies[0].rows].sort((a, b) =>
          before(key(a, column), key(b, column)) * (ascending ? 1 : -1));
        table.tBodies[0].append(...rows);
      });
    });
  }
});
