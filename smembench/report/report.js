"use strict";
for (const plot of document.querySelectorAll(".plot")) {
  const marks = [...plot.querySelectorAll("[data-value]")];
  const said = plot.parentElement.querySelector(".value");
  let current = -1;
  const read = (index) => {
    marks[current]?.classList.remove("read");
    current = index;
    marks[current]?.classList.add("read");
    said.textContent = marks[current]?.dataset.value ?? "";
  };
  plot.addEventListener("pointerover", (event) => {
    const mark = event.target.closest("[data-value]");
    if (mark) read(marks.indexOf(mark));
  });
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !marks.length) return;
    event.preventDefault();
    read((Math.max(current, step < 0 ? 0 : -1) + step + marks.length) % marks.length);
  });
  plot.addEventListener("blur", () => read(-1));
}
