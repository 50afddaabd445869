// A long list of which only what is near the window is drawn: each line stands at its place in a box as high as all of them. Lines
// are heads of groups, and rows or lines of tiles; which has the focus, or is about to get it, is drawn wherever it is.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.mjs";
import { api } from "./api.js";
import { set, state } from "./state.js";

const GAP = 14;
const TILE_WIDTH = 310;
const HEAD_HEIGHT = 46;
const AROUND = 700; // pixels above and below the window that are drawn too
const ALL_LINES = 60; // a list of so few lines is drawn whole
const SEEN_AFTER_MS = 300;

let layout = { lines: [], places: new Map(), height: 0 };

// The lines of these sections for a list so wide. A section: {key, head, ids}; `places` says in which line and column a session is.
function arrange(sections, shape, width, heights) {
  const columns = shape === "row" ? 1 : Math.max(1, Math.floor((width + GAP) / (TILE_WIDTH + GAP)));
  const gap = shape === "row" ? 0 : GAP;
  const lines = [];
  const places = new Map();
  let top = 0;
  for (const section of sections) {
    if (section.head) {
      lines.push({ top, height: HEAD_HEIGHT, section, ids: [] });
      top += HEAD_HEIGHT;
    }
    for (let begin = 0; begin < section.ids.length; begin += columns) {
      const ids = section.ids.slice(begin, begin + columns);
      ids.forEach((id, column) => places.set(id, { line: lines.length, column }));
      lines.push({ top, height: heights[shape], ids });
      top += heights[shape] + gap;
    }
  }
  return { lines, places, columns, height: Math.max(0, top - gap) };
}

// The first line that ends below a height.
function lineAt(lines, height) {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].top + lines[middle].height < height) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Give the focus to a session's tile, wherever in the list it is.
export const focusOn = (id) => set({ wanted: id });

// Move the focus by one session, or from line to line.
export function moveBy(step, across) {
  const { lines, places } = layout;
  const ids = [...places.keys()];
  if (!ids.length) return;
  const id = state.wanted ?? document.activeElement?.dataset?.id;
  const at = places.get(id);
  if (!at) return void focusOn(ids[0]);
  if (across) return void focusOn(ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(id) + step))]);
  let line = at.line + step;
  while (lines[line] && !lines[line].ids.length) line += step;
  const found = lines[line]?.ids;
  if (found) focusOn(found[Math.min(at.column, found.length - 1)]);
}

const told = { sent: "", timer: 0 };

// Tell the server which sessions of other machines are in view: of those it looks at the screens.
function tellSeen(ids) {
  const seen = document.hidden ? [] : ids.filter((id) => id.includes("/")).sort();
  clearTimeout(told.timer);
  told.timer = setTimeout(() => {
    const text = `${state.reader} ${seen.join(" ")}`;
    if (!state.reader || told.sent === text) return;
    told.sent = text;
    api.seen(state.reader, seen).catch(() => { told.sent = ""; });
  }, SEEN_AFTER_MS);
}

function heightsOf(list) {
  const style = getComputedStyle(list);
  return { tile: Number(style.getPropertyValue("--tile-height")) || 192, row: Number(style.getPropertyValue("--row-height")) || 48 };
}

// `drawHead` and `drawRow` make the elements; `place` is a reference to the list.
export function List({ place, sections, shape, label, drawHead, drawRow }) {
  const [, draw] = useState(0);
  const size = useRef({ width: 0, heights: { tile: 192, row: 48 } });
  const redraw = () => draw((number) => number + 1);
  useLayoutEffect(() => {
    const measure = () => {
      const { clientWidth: width } = place.current;
      const heights = heightsOf(place.current);
      const before = size.current;
      if (width === before.width && heights.tile === before.heights.tile && heights.row === before.heights.row) return;
      size.current = { width, heights };
      redraw();
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(place.current);
    let frame = 0;
    const scrolled = () => { frame ||= requestAnimationFrame(() => { frame = 0; redraw(); }); };
    window.addEventListener("scroll", scrolled, { passive: true });
    window.addEventListener("resize", scrolled);
    document.addEventListener("visibilitychange", scrolled);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
      window.removeEventListener("scroll", scrolled);
      window.removeEventListener("resize", scrolled);
      document.removeEventListener("visibilitychange", scrolled);
      tellSeen([]);
    };
  }, []);
  const { width, heights } = size.current;
  layout = arrange(sections, shape, width || 1, heights);
  const { lines, places, columns } = layout;
  const above = place.current ? place.current.getBoundingClientRect().top : 0;
  const shown = lines.length <= ALL_LINES ? [...lines] : lines.slice(lineAt(lines, -above - AROUND), lineAt(lines, innerHeight - above + AROUND) + 1);
  const focused = document.activeElement?.dataset?.id;
  for (const id of [focused, state.wanted]) {
    const line = lines[places.get(id)?.line];
    if (line && !shown.includes(line)) shown.push(line);
  }
  shown.sort((one, other) => one.top - other.top);
  useEffect(() => {
    tellSeen(width ? lines.slice(lineAt(lines, -above), lineAt(lines, innerHeight - above) + 1).flatMap((line) => line.ids) : []);
  });
  const find = (id) => place.current.querySelector(`.tile-link[data-id="${CSS.escape(id)}"]`);
  useLayoutEffect(() => {
    // an element that is moved while others come and go loses the focus
    if (focused && document.activeElement === document.body) find(focused)?.focus({ preventScroll: true });
    if (!places.has(state.wanted) || !width) return;
    const link = find(state.wanted);
    state.wanted = null;
    if (!link) return;
    const box = link.closest("li").getBoundingClientRect();
    if (box.top < 60 || box.bottom > innerHeight - 20) window.scrollBy(0, box.top - innerHeight / 3);
    link.focus({ preventScroll: true });
  });
  const part = shape === "row" ? "100%" : `calc((100% - ${(columns - 1) * GAP}px) / ${columns})`;
  const left = (column) => (column ? `calc((100% + ${GAP}px) / ${columns} * ${column})` : "0");
  const number = places.size;
  let before = 0;
  const firsts = new Map(lines.map((line) => { const first = before; before += line.ids.length; return [line, first]; }));
  return html`<ul ref=${place} class=${`list ${shape}s`} role="list" aria-label=${label} style=${{ height: `${layout.height}px` }}>
    ${width ? shown.flatMap((line) => (line.section ? drawHead(line.section, { top: `${line.top}px` })
      : line.ids.map((id, column) => drawRow(id, { top: `${line.top}px`, left: left(column), width: part }, { number, at: firsts.get(line) + column + 1 })))) : null}
  </ul>`;
}
