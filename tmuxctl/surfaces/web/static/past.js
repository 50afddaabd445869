// Any moment of a session again: a slider over its turns, its marks and what it printed between them. The screen of that moment is
// drawn by the server from the journal, and shown above the live one.
import { html, useEffect, useRef, useState } from "./vendor/preact.mjs";
import { api } from "./api.js";
import { drawScreen, fontFor, makeTerminal } from "./terminal.js";
import { clockTime, plain } from "./text.js";

const FEWEST_STOPS = 40;
const CAST_CHARS = 8 << 20;

// The moments that are known, and where the output begins and ends.
async function findMoments(id) {
  const shown = await api.show(id);
  const found = /^c1:(.*):(\d+)$/.exec(shown.cursor ?? "");
  const incarnation = found?.[1] ?? "";
  const end = Number(found?.[2] ?? 0);
  const told = await api.moments(id).catch(() => null);
  if (told) return { incarnation: told.incarnation ?? incarnation, start: told.start ?? 0, end: told.end ?? end, moments: told.moments };
  return { incarnation, start: 0, end, moments: await readTurns(id).catch(() => []) };
}

// Turns and marks as the recording tells them, by their names alone.
async function readTurns(id) {
  const controller = new AbortController();
  const answer = await api.cast(id, controller.signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let read = 0;
  const moments = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done || read > CAST_CHARS) break;
    read += value.length;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.includes('"m"')) continue;
      const [, kind, text] = JSON.parse(line);
      const turn = kind === "m" && /^turn (\d+)/.exec(text);
      if (turn) moments.push({ kind: "turn", turn: Number(turn[1]), text: "" });
    }
  }
  controller.abort();
  return moments;
}

// The stops of the slider in order: each {at: what `screen` takes, label}.
function stopsOf({ incarnation, start, end, moments }) {
  const known = moments.filter((one) => one.kind === "turn" || one.kind === "mark").map((one) => ({
    at: one.kind === "mark" ? `mark:${one.text}` : String(one.turn),
    offset: one.end || one.offset,
    label: one.kind === "mark" ? `mark ${plain(one.text, 60)}` : `turn ${one.turn}${one.text ? `: ${plain(one.text, 60)}` : ""}`,
    time: one.until || one.at,
    turn: true,
  }));
  const placed = known.every((one) => Number.isFinite(one.offset));
  if (!placed) return [...known, { at: null, label: "now" }];
  const even = Math.max(0, FEWEST_STOPS - known.length);
  const between = Array.from({ length: even }, (_, at) => {
    const offset = Math.round(start + ((end - start) * (at + 1)) / (even + 1));
    return { at: `c1:${incarnation}:${offset}`, offset, label: "" };
  });
  const stops = [...known, ...between].sort((one, two) => one.offset - two.offset);
  return [...stops.filter((one, at) => one.turn || one.offset !== stops[at - 1]?.offset), { at: null, label: "now" }];
}

export function Past({ row, box, onClose }) {
  const [stops, setStops] = useState(null);
  const [at, setAt] = useState(0);
  const [told, setTold] = useState(null);
  const drawn = useRef(null);
  const place = useRef(null);
  const terminal = useRef(null);

  useEffect(() => {
    let over = false;
    findMoments(row.id).then((found) => {
      if (over) return;
      const all = stopsOf(found);
      setStops(all);
      setAt(all.length - 1);
    }).catch((error) => setTold({ problem: error }));
    return () => { over = true; };
  }, [row.id]);

  useEffect(() => {
    terminal.current = makeTerminal({ disableStdin: true, cursorInactiveStyle: "outline", scrollback: 0 });
    terminal.current.open(place.current);
    return () => terminal.current.dispose();
  }, []);

  const stop = stops?.[at];
  useEffect(() => {
    if (!stop?.at) {
      setTold(null);
      return undefined;
    }
    const controller = new AbortController();
    // a slider that is dragged passes many moments
    const timer = setTimeout(async () => {
      try {
        const screen = await api.screen(row.id, { at: stop.at, ansi: true, state: false }, controller.signal);
        terminal.current.options.fontSize = fontFor(box.current.clientWidth - 20, box.current.clientHeight - 12, screen.cols, screen.rows);
        terminal.current.resize(screen.cols, screen.rows);
        terminal.current.reset();
        terminal.current.write(drawScreen(screen));
        drawn.current = stop.at;
        setTold(screen);
      } catch (error) {
        if (error.name !== "AbortError") setTold({ problem: error });
      }
    }, 90);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [stop?.at]);

  const known = told?.problem ? plain(told.problem.message)
    : !stops ? "Looking for its moments…"
    : !stop.at ? "now"
    : [stop.label || told?.moment, told?.at && clockTime(told.at), told?.approximate && "a part of the screen is not known"].filter(Boolean).join(" · ") || "…";
  const step = (by) => setAt(Math.max(0, Math.min(stops.length - 1, at + by)));
  return html`<div class=${`past-screen${stop?.at ? "" : " hidden"}`} ref=${place} aria-hidden=${!stop?.at}></div>
    <div class="past" role="group" aria-label="Earlier moments">
      <button type="button" class="quiet icon" aria-label="Earlier" disabled=${!stops || at === 0} onClick=${() => step(-1)}>◀</button>
      <input type="range" min="0" max=${stops ? stops.length - 1 : 0} value=${at} disabled=${!stops} aria-label="Moment" aria-valuetext=${known}
        onInput=${(event) => setAt(Number(event.target.value))}/>
      <button type="button" class="quiet icon" aria-label="Later" disabled=${!stops || at === stops.length - 1} onClick=${() => step(1)}>▶</button>
      <output class="past-label"><bdi>${known}</bdi></output>
      <button type="button" onClick=${onClose}>Back to now</button>
    </div>`;
}
