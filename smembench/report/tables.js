// Tables sort by a click on a heading; long ones have a field that filters their lines.
const order = new Intl.Collator("en", { numeric: true });
const number = (text) => parseFloat(text.replace(/^\(/, ""));
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, place) => heading.firstChild.addEventListener("click", () => {
    const up = heading.ariaSort !== "ascending";
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.ariaSort = up ? "ascending" : "descending";
    const key = (row) => row.cells[place].textContent;
    const compare = heading.classList.contains("number")
      ? (a, b) => number(a) - number(b) : (a, b) => order.compare(a, b);
    const empty = (text) => text === "" || (heading.classList.contains("number") && Number.isNaN(number(text)));
    body.append(...[...body.rows].sort((a, b) =>
      empty(key(a)) - empty(key(b)) || (up ? 1 : -1) * (compare(key(a), key(b)) || 0)));
  }));
  if (body.rows.length < 8) continue;
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
    for (const row of body.rows) {
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      left += !row.hidden;
    }
    count.textContent = field.value && ` ${left} of ${body.rows.length}`;
  });
  table.parentElement.before(label);
}

// A heading's meaning, at the pointer or at the focus; Escape hides it.
const tip = document.getElementById("tip");
const hide = () => { tip.hidden = true; };
for (const button of document.querySelectorAll("th [aria-describedby]")) {
  const show = () => {
    tip.textContent = document.getElementById(button.getAttribute("aria-describedby")).textContent;
    tip.hidden = false;
    const { left, top, bottom } = button.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${top > tip.offsetHeight + 8 ? top - tip.offsetHeight - 6 : bottom + 6}px`;
  };
  button.addEventListener("pointerenter", show);
  button.addEventListener("focus", show);
  button.addEventListener("pointerleave", hide);
  button.addEventListener("blur", hide);
}
addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
addEventListener("scroll", hide, true);
