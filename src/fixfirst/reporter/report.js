"use strict";
// Click a column's title to sort by it, again for the other way round. Without JavaScript the tables are complete, as ranked.
for (const table of document.querySelectorAll(".sortable table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.textContent || body.rows.length < 2) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.setAttribute("aria-label", "sort by " + head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.value;
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a), y = key(b);
        if ((x === undefined) !== (y === undefined)) return x === undefined ? 1 : -1;
        const order = x === undefined
          ? a.cells[column].textContent.localeCompare(b.cells[column].textContent)
          : Number(x) - Number(y);
        return descending ? -order : order;
      });
      body.append(...rows);
    });
  });
}

// Point at a mark of a figure, or tap it: a card shows what stands in its <title>, and where it can be watched. The nearest
// mark within REACH counts, since marks are small and fingers are not. Without JavaScript the browser shows the titles itself.
const REACH = 22; // pixels
const replays = JSON.parse(document.getElementById("replays").textContent);
const card = document.getElementById("card");
let chosen = null, held = false; // held: the card was asked for by a tap or a key, and stays until the next one

function put(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  card.append(element);
  return element;
}

function show(mark) {
  if (chosen) chosen.classList.remove("chosen");
  chosen = mark;
  card.hidden = !mark;
  if (!mark) return;
  mark.classList.add("chosen");
  card.replaceChildren();
  mark.dataset.tip.split("\n").forEach((line, i) => put(i ? "span" : "b", line));
  const replay = replays[mark.dataset.watch];
  if (replay && replay.page) Object.assign(put("a", "watch its replay"), {href: replay.page});
  else if (replay) put("code", replay.command);
  const at = mark.getBoundingClientRect(), size = card.getBoundingClientRect(), wide = document.documentElement.clientWidth;
  card.style.left = `${scrollX + Math.min(Math.max(at.x + at.width / 2 - size.width / 2, 8), wide - size.width - 8)}px`;
  const above = at.top - size.height - 10;
  card.style.top = `${scrollY + (above > 4 ? above : at.bottom + 10)}px`;
}

for (const svg of document.querySelectorAll("figure svg")) {
  const marks = [...svg.querySelectorAll(".mark")];
  for (const mark of marks) {
    const title = mark.querySelector("title");
    mark.dataset.tip = title.textContent;
    title.remove(); // the card shows it
    mark.setAttribute("aria-label", mark.dataset.tip.replaceAll("\n", ", "));
    mark.setAttribute("role", "img");
  }
  const nearest = (event) => {
    let best = null, least = REACH;
    for (const mark of marks) {
      const box = mark.getBoundingClientRect();
      const x = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
      const y = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
      const far = Math.hypot(x, y);
      if (far < least) [best, least] = [mark, far];
    }
    return best;
  };
  svg.addEventListener("pointermove", (event) => {
    if (held || event.pointerType === "touch") return;
    const mark = nearest(event);
    if (mark !== chosen) show(mark);
  });
  svg.addEventListener("pointerleave", () => held || show(null));
  svg.addEventListener("click", (event) => {
    const mark = nearest(event);
    held = mark !== null;
    show(mark);
    event.stopPropagation();
  });
}
card.addEventListener("click", (event) => event.stopPropagation());
document.addEventListener("click", () => { held = false; show(null); });

// With the keyboard: in a figure's box, arrow keys go from mark to mark, Escape closes the card.
for (const box of document.querySelectorAll("figure .scroll")) {
  box.addEventListener("keydown", (event) => {
    const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
    const marks = [...box.querySelectorAll(".mark")].filter((mark) => mark.getBoundingClientRect().width);
    if (event.key === "Escape") { held = false; show(null); }
    if (!step || !marks.length) return;
    event.preventDefault();
    held = true;
    show(marks[(marks.indexOf(chosen) + step + marks.length) % marks.length]);
  });
}
