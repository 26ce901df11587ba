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
