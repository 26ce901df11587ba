// Tables sort by a click on a heading; long ones have a field that filters their lines.
const order = new Intl.Collator("en", { numeric: true });
const number = (text) => parseFloat(text.replace(/^\(/, ""));
document.addEventListener("click", ({ target }) => {
  const heading = target.closest("thead th");
  if (!heading || heading === target) return;
  const table = heading.closest("table");
  const up = heading.ariaSort !== "ascending";
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.ariaSort = up ? "ascending" : "descending";
  const numeric = heading.classList.contains("number");
  const keyed = [...table.tBodies[0].rows].map((row) => [row, row.cells[heading.cellIndex].textContent]);
  const compare = numeric ? (a, b) => number(a) - number(b) : (a, b) => order.compare(a, b);
  const empty = (text) => text === "" || (numeric && Number.isNaN(number(text)));
  keyed.sort(([, a], [, b]) => empty(a) - empty(b) || (up ? 1 : -1) * (compare(a, b) || 0));
  table.tBodies[0].append(...keyed.map(([row]) => row));
});

function addFilters(root) {
  for (const table of root.querySelectorAll("table")) {
    const { rows } = table.tBodies[0];
    if (rows.length < 8) continue;
    const label = document.createElement("label");
    const field = document.createElement("input");
    const count = document.createElement("output");
    field.type = "search";
    label.append("Filter ", field);
    label.className = "filter";
    label.append(count);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      let left = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        left += !row.hidden;
      }
      count.textContent = field.value && ` ${left} of ${rows.length}`;
    });
    table.parentElement.before(label);
  }
}
addFilters(document);

// A heading's meaning, at the pointer or at the focus; Escape hides it.
const tip = document.getElementById("tip");
const hide = () => { tip.hidden = true; };
const show = ({ target }) => {
  const button = target.closest?.("th [aria-describedby]");
  if (!button) return;
  tip.textContent = document.getElementById(button.getAttribute("aria-describedby")).textContent;
  tip.hidden = false;
  const { left, top, bottom } = button.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${top > tip.offsetHeight + 8 ? top - tip.offsetHeight - 6 : bottom + 6}px`;
};
for (const kind of ["pointerover", "focusin"]) addEventListener(kind, show);
for (const kind of ["pointerout", "focusout"]) addEventListener(kind, hide);
addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
addEventListener("scroll", hide, true);
