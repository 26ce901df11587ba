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
const figures = (root) => [...root.querySelectorAll("figure")];
for (const figure of figures(document)) near.observe(figure);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...drawn.keys()].forEach(draw));
addEventListener("beforeprint", () =>
  figures(document).filter((figure) => figure.offsetParent && !drawn.has(figure)).forEach(draw));

// What is folded is text, which costs nothing, until it is opened.
document.addEventListener("toggle", ({ target }) => {
  const folded = target.querySelector(":scope > noscript");
  if (!folded) return;
  folded.outerHTML = folded.textContent;
  for (const figure of figures(target)) near.observe(figure);
  addFilters(target);
}, true);

document.addEventListener("click", async ({ target }) => {
  if (!target.matches("[data-save]")) return;
  const figure = target.closest("figure");
  if (!drawn.has(figure)) await draw(figure);
  const link = document.createElement("a");
  link.href = await drawn.get(figure).view.toImageURL(target.dataset.save, 2);
  link.download = `${figure.id}.${target.dataset.save}`;
  link.click();
});
