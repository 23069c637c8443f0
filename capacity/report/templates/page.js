"use strict";
// Explanations: of what is pointed at or focused, in the line of its figure or table.
const lineOf = element => {
  const box = element.closest("[data-explained]");
  return box && box.querySelector(".says");
};
const explain = event => {
  const element = event.target.closest("[data-says]");
  const line = element && lineOf(element);
  if (line) line.textContent = element.dataset.says;
};
document.addEventListener("mouseover", explain);
document.addEventListener("focusin", explain);

// Marks of a figure are one stop of Tab; arrows lead from one to the next.
for (const box of document.querySelectorAll("[data-explained]")) {
  const marks = [...box.querySelectorAll(".mark")];
  marks.forEach((mark, i) => mark.setAttribute("tabindex", i ? "-1" : "0"));
}
const STEPS = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
document.addEventListener("keydown", event => {
  const mark = event.target.closest(".mark");
  if (!mark) return;
  const marks = [...mark.closest("[data-explained]").querySelectorAll(".mark")];
  const at = marks.indexOf(mark);
  const to = event.key === "Home" ? 0 : event.key === "End" ? marks.length - 1
    : event.key in STEPS ? at + STEPS[event.key] : -1;
  if (event.key !== "Home" && event.key !== "End" && !(event.key in STEPS)) return;
  event.preventDefault();
  if (to < 0 || to >= marks.length) return;
  mark.setAttribute("tabindex", "-1");
  marks[to].setAttribute("tabindex", "0");
  marks[to].focus();
});

// Tables: a heading sorts by its column, and back.
document.addEventListener("click", event => {
  const button = event.target.closest("th button");
  if (!button) return;
  const heading = button.closest("th"), table = heading.closest("table");
  const column = [...heading.parentElement.children].indexOf(heading);
  const isNumber = heading.classList.contains("number");
  const before = heading.getAttribute("aria-sort");
  const order = before === "descending" || (before === "none" && !isNumber)
    ? "ascending" : "descending";
  for (const each of heading.parentElement.children)
    if (each.hasAttribute("aria-sort")) each.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const valueOf = row => row.children[column].dataset.value;
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((one, other) => {
    const a = valueOf(one), b = valueOf(other);
    // what isn't known stays at the end
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * (isNumber ? Number(a) - Number(b) : a.localeCompare(b));
  });
  body.append(...rows);
  const line = lineOf(button);
  if (line) line.textContent = `Sorted by ${button.textContent.trim()}, ${order}. ${button.dataset.says}`;
});
