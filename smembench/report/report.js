const root = getComputedStyle(document.documentElement);
const drawn = new Map();

// A chart is drawn when it comes near the screen, in the page's colours of that time.
async function draw(figure) {
  const text = figure.querySelector("script").textContent;
  const spec = JSON.parse(text.replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => root.getPropertyValue(name).trim()));
  drawn.get(figure)?.finalize();
  drawn.set(figure, await vegaEmbed(figure.querySelector(".plot"), spec, { renderer: "svg", actions: false, ast: true }));
}
const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    draw(target);
  }
}, { rootMargin: "400px" });
const figures = [...document.querySelectorAll("figure")];
for (const figure of figures) near.observe(figure);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...drawn.keys()].forEach(draw));
addEventListener("beforeprint", () => figures.filter((figure) => figure.offsetParent && !drawn.has(figure)).forEach(draw));

for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", async () => {
    const figure = button.closest("figure");
    if (!drawn.has(figure)) await draw(figure);
    const link = document.createElement("a");
    link.href = await drawn.get(figure).view.toImageURL(button.dataset.save, 2);
    link.download = `${figure.id}.${button.dataset.save}`;
    link.click();
  });
}

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
  label.append("Only lines with ", field);
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
