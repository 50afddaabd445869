// Any moment of a session again: a slider over its turns, its marks and what it printed between them. The screen of that moment is
// drawn by the server from the journal, and shown above the live one.
import { html, useEffect, useRef, useState } from "./vendor/preact.mjs";
import { api } from "./api.js";
import { drawScreen, fontFor, makeTerminal } from "./terminal.js";
import { clockTime, plain } from "./text.js";

const FEWEST_STOPS = 40;

// The stops of the slider in order: each {at: what `screen` takes, label}.
function stopsOf({ incarnation, start, end, moments }) {
  const known = moments.filter((one) => one.kind === "mark" || (one.kind === "turn" && one.turn)).map((one) => ({
    at: one.kind === "mark" ? `mark:${one.text}` : String(one.turn),
    offset: one.end || one.offset,
    label: one.kind === "mark" ? `mark ${plain(one.text, 60)}` : `turn ${one.turn}${one.text ? `: ${plain(one.text, 60)}` : ""}`,
    time: one.until || one.at,
    turn: true,
  }));
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
    api.moments(row.id).then((found) => {
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
    // it is looked at only
    terminal.current.textarea.tabIndex = -1;
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
    : [stop.label || told?.moment, told?.at && clockTime(told.at), `${at + 1} of ${stops.length}`, told?.approximate && "a part of the screen is not known"].filter(Boolean).join(" · ");
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
