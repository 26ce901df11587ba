const { pad: start, banks, pads } = JSON.parse(document.getElementById("steps").textContent);
const [access, pad, padding, wave, back, next, play, source, said, svg, waves] =
  ["access", "pad", "padding", "wave", "back", "next", "play", "source", "said", "banks", "waves"].map((id) => document.getElementById(id));
const CELL = 26, GAP = 110;
const ranges = (numbers) => {
  const found = [];
  for (const number of [...new Set(numbers)].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number; else found.push([number, number]);
  }
  return found.map(([from, to]) => from === to ? from : `${from}–${to}`).join(", ");
};
const place = (name, attributes, text = "") => {
  const part = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  part.textContent = text;
  svg.append(part);
};
const box = (x, y, state, text) => {
  place("rect", { x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2, class: state });
  place("text", { x: x + CELL / 2, y: y + CELL / 2 + 4, class: state }, text);
};
const shown = () => pads[pad ? pad.value : start][access.value];
const bank = (word) => word % banks;

function draw() {
  const { words, waves: every, kind, ideal, first, columns, padding: spare, rows } = shown();
  const now = Number(wave.value);
  const turn = new Map(every.flatMap((lanes, at) => lanes.map((lane) => [lane, at])));
  const state = (lane) => !turn.has(lane) ? "idle" : turn.get(lane) === now ? "now" : turn.get(lane) < now ? "done" : "waits";
  const asked = new Map();
  words.forEach((of, lane) => of.forEach((word) => { if (asked.get(word) !== "now") asked.set(word, state(lane)); }));
  const wide = Math.max(banks, words.length, columns);
  const top = 2 * CELL + GAP + 70;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${wide * CELL} ${top + rows.length * CELL}`);
  place("text", { x: 0, y: 14, class: "label" }, "lanes");
  for (const lane of every[now] ?? []) {
    for (const word of words[lane]) {
      place("line", { x1: (lane + .5) * CELL, y1: 20 + CELL, x2: (bank(word) + .5) * CELL, y2: 20 + CELL + GAP, class: "now" });
    }
  }
  words.forEach((_, lane) => box(lane * CELL, 20, state(lane), lane));
  const busy = new Set((every[now] ?? []).flatMap((lane) => words[lane].map(bank)));
  for (let at = 0; at < banks; at += 1) box(at * CELL, 20 + CELL + GAP, busy.has(at) ? "now" : "idle", at);
  place("text", { x: 0, y: 36 + 2 * CELL + GAP, class: "label" }, "banks");
  place("text", { x: 0, y: top - 8, class: "label" }, "words of the array, by bank");
  rows.forEach((row, down) => {
    for (let column = 0; column < columns; column += 1) {
      const word = first + row * columns + column;
      const sign = { now: "●", done: "✓" }[asked.get(word)] ?? "";
      const free = column < columns - spare ? "free" : "spare";
      box(column * CELL, top + down * CELL, asked.get(word) ?? free, `${sign}${bank(word)}`);
    }
  });
  const lanes = every[now] ?? [];
  said.textContent = `Wavefront ${now + 1} of ${every.length}${every.length > ideal ? ` (${ideal} would do)` : ""}: `
    + `${busy.size === 1 ? "bank" : "banks"} ${ranges([...busy])} ${busy.size === 1 ? "serves" : "serve"} the ${kind} of `
    + `${lanes.length === 1 ? "lane" : "lanes"} ${ranges(lanes)}.`;
  back.disabled = now === 0;
  next.disabled = now >= every.length - 1;
  if (next.disabled) pause();
}

let playing = 0;
function pause() {
  clearInterval(playing);
  playing = 0;
  play.textContent = "▶ Play";
}
const step = (by) => { wave.value = Number(wave.value) + by; draw(); };

function choose() {
  const { waves: every, words, source: line } = shown();
  pause();
  play.disabled = every.length < 2;
  wave.max = every.length - 1;
  wave.value = 0;
  source.textContent = line;
  if (pad) padding.textContent = `${pad.value}: ${every.length} ${every.length === 1 ? "wavefront" : "wavefronts"}`;
  waves.replaceChildren(...every.map((lanes, at) => {
    const row = document.createElement("tr");
    for (const text of [at + 1, ranges(lanes), ranges(lanes.flatMap((lane) => words[lane].map(bank)))]) row.insertCell().textContent = text;
    row.cells[0].className = "number";
    return row;
  }));
  draw();
}

function list() {
  const worst = access.selectedIndex;
  access.replaceChildren(...pads[pad ? pad.value : start].map(({ title }, at) => new Option(title, at)));
  access.selectedIndex = worst;
  choose();
}

if (pad) {
  const known = Object.keys(pads).map(Number);
  Object.assign(pad, { min: Math.min(...known), max: Math.max(...known), value: start });
  pad.addEventListener("input", list);
}
access.addEventListener("change", choose);
wave.addEventListener("input", draw);
back.addEventListener("click", () => step(-1));
next.addEventListener("click", () => step(1));
play.addEventListener("click", () => {
  if (playing) return pause();
  if (next.disabled) step(-wave.max);
  playing = setInterval(step, 800, 1);
  play.textContent = "❚❚ Pause";
});
const all = pads[pad ? pad.value : start];
access.replaceChildren(...all.map(({ title }, at) => new Option(title, at)));
access.value = all.reduce((most, one, at) => one.waves.length / one.ideal > all[most].waves.length / all[most].ideal ? at : most, 0);
choose();
