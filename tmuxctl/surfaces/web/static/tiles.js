// The overview: a tile or a row for each session, who needs a person first. The order stands still while a pointer or the focus
// is on the list, so that nothing moves away under a finger.
import { Component, html, useEffect, useRef, useState } from "./vendor/preact.mjs";
import { openSheet } from "./dialog.js";
import { lookOf, Picture, StateIcon } from "./icons.js";
import { focusOn, List } from "./list.js";
import { Answers } from "./question.js";
import { go, pathOf } from "./route.js";
import { byName, matches, may, remember, remembered, serverNow, set, sorted, state } from "./state.js";
import { TeamsLink } from "./teams.js";
import { count, duration, plain } from "./text.js";

const HELD_AFTER_TOUCH_MS = 3000;

// How long ago it printed, drawn anew when the text changes.
export function Ago({ since, title }) {
  const text = since ? duration((serverNow() - Date.parse(since)) / 1000) : "–";
  const [, draw] = useState(text);
  useEffect(() => {
    if (!since) return undefined;
    const timer = setInterval(() => draw(duration((serverNow() - Date.parse(since)) / 1000)), 1000);
    return () => clearInterval(timer);
  }, [since]);
  return html`<span class="ago" title=${title}>${text}</span>`;
}

export const isOver = (row) => row.state === "exited" || row.state === "lost";

function What({ row }) {
  if (row.question) return html`<p class="tile-text asks"><bdi>${plain(row.question.text, 400)}</bdi></p>`;
  return html`<p class="tile-text line"><bdi>${plain(row.line) || "\u00a0"}</bdi></p>`;
}

function Meta({ row }) {
  const place = [row.folder, row.branch && `⎇ ${row.branch}`].filter(Boolean).map((one) => plain(one, 200)).join("  ");
  return html`<p class="tile-meta">
    <span class="what"><bdi>${plain(row.profile || row.command, 120)}</bdi></span>
    <span class="where" title=${place}><bdi>${place}</bdi></span></p>`;
}

class Tile extends Component {
  shouldComponentUpdate(next) {
    const { props } = this;
    return ["row", "shape", "ending", "link", "rights"].some((name) => next[name] !== props[name])
      || ["top", "left", "width"].some((name) => next.place[name] !== props.place[name]) || next.among.at !== props.among.at || next.among.number !== props.among.number;
  }

  render({ row, shape, ending, place, among }) {
    const look = lookOf(row);
    const path = pathOf(row.id);
    const open = () => go(path);
    const link = html`<a class="tile-link" href=${path} data-id=${row.id}
      onClick=${(event) => { if (!event.metaKey && !event.ctrlKey && !event.shiftKey) { event.preventDefault(); open(); } }}
      ><bdi>${plain(row.name, 80)}</bdi></a>`;
    const status = html`<span class="status"><${StateIcon} look=${look}/><span>${plain(row.word, 40)}</span></span>`;
    const tags = html`<span class="tags">${row.tags.map((tag) => html`<span class="tag" key=${tag}>${plain(tag, 63)}</span>`)}</span>`;
    const ago = isOver(row) ? html`<span class="ago"></span>` : html`<${Ago} since=${row.active} title="since its last output"/>`;
    const names = `${shape} look-${look}${row.needs ? " needs" : ""}${ending ? " ends" : ""}`;
    if (shape === "row") {
      return html`<li class=${names} style=${place} aria-setsize=${among.number} aria-posinset=${among.at}>${status}<span class="row-name">${link}</span><${What} row=${row}/>
        ${row.question && may("write") ? html`<${Answers} row=${row} most=${3} onMore=${open}/>` : tags}<${Meta} row=${row}/>${ago}</li>`;
    }
    return html`<li class=${names} style=${place} aria-setsize=${among.number} aria-posinset=${among.at}><div class="tile-head">${status}${ago}</div><h2>${link}</h2><${What} row=${row}/>
      <div class="tile-foot">${row.question && may("write") ? html`<${Answers} row=${row} most=${3} onMore=${open}/>` : tags}</div>
      <${Meta} row=${row}/></li>`;
  }
}

// The groups of sessions as they are told: who needs a person over all machines, then this machine and the others by name, each
// with what it does not answer. Where there is one machine only there is one group, without a head.
function sectionsOf(rows, words) {
  if (!state.machines.size && rows.every((row) => !row.machine)) return [{ key: "all", ids: rows.map((row) => row.id) }];
  const needing = rows.filter((row) => row.needs);
  const groups = new Map([["", []]]);
  for (const name of state.machines.keys()) groups.set(name, []);
  for (const row of rows) {
    if (!groups.has(row.machine ?? "")) groups.set(row.machine, []);
    groups.get(row.machine ?? "").push(row);
  }
  const folded = words ? [] : remembered("folded", []);
  const found = needing.length ? [{ key: "needs", head: true, title: "Needs you", rows: needing, ids: needing.map((row) => row.id) }] : [];
  for (const name of [...groups.keys()].sort(byName)) {
    const machine = state.machines.get(name);
    const here = groups.get(name);
    if (!here.length && (words || !name)) continue;
    const isFolded = folded.includes(name);
    const ids = isFolded ? [] : here.filter((row) => !row.needs).map((row) => row.id);
    found.push({ key: `machine ${name}`, head: true, name, title: name || state.me?.machine || "this machine", machine, rows: here, ids, isFolded });
  }
  return found;
}

function fold(name, isFolded) {
  const others = remembered("folded", []).filter((one) => one !== name);
  remember("folded", isFolded ? others : [...others, name].slice(-1000));
  set({});
}

const KINDS = [["needs", "needs you", "need you"], ["busy", "busy"], ["idle", "idle"], ["starting", "starting"], ["unknown", "unknown"], ["exited", "ended"], ["lost", "lost"]];

// How many sessions are in each state: `2 need you · 5 busy`.
function counts(rows) {
  const number = {};
  for (const row of rows) {
    const kind = row.needs ? "needs" : row.state;
    number[kind] = (number[kind] ?? 0) + 1;
  }
  return KINDS.filter(([kind]) => number[kind]).map(([kind, one, many = one]) => ({ kind, text: `${number[kind]} ${number[kind] === 1 ? one : many}` }));
}

function GroupHead({ section, place }) {
  const { machine, name } = section;
  const problem = machine?.problem;
  const told = problem ? html`<span class="machine-problem" title=${plain(problem.hint, 300)}><strong>${plain(problem.reason, 40)}</strong> ${plain(problem.message, 300)}</span>`
    : name && machine && !machine.known ? html`<span class="hint">is asked…</span>` : null;
  const title = html`<bdi>${plain(section.title, 80)}</bdi> <span class="number">${section.rows.length}</span>`;
  return html`<li class=${`group-head${problem ? " silent" : ""}${section.key === "needs" ? " needs" : ""}`} style=${place}>
    <h2>${section.key === "needs" ? title : html`<button type="button" class="quiet fold" aria-expanded=${!section.isFolded} onClick=${() => fold(name, section.isFolded)}>${title}</button>`}</h2>
    <span class="counts">${section.key !== "needs" && counts(section.rows).map(({ kind, text }) => html`<span key=${kind} class=${`count-${kind}`}>${text}</span>`)}</span>${told}</li>`;
}

// The groups as they are drawn: those of need, or while the list is in use what they were, with what is new at the end of each.
function useOrder(wanted, held) {
  const drawn = useRef([]);
  if (!held) drawn.current = wanted;
  else {
    const where = new Map(drawn.current.flatMap((section) => section.ids.map((id) => [id, section.key])));
    const here = new Set(wanted.flatMap((section) => section.ids));
    const kept = new Map(drawn.current.map((section) => [section.key, section.ids.filter((id) => here.has(id))]));
    const now = wanted.map((section) => ({ ...section, ids: section.isFolded ? [] : [...(kept.get(section.key) ?? []), ...section.ids.filter((id) => !where.has(id))] }));
    // a group that is gone from the wanted ones, as the last that needed somebody does not any more, stays with what it shows
    const lost = drawn.current.filter((section) => !wanted.some((one) => one.key === section.key) && kept.get(section.key).length);
    drawn.current = [...lost.map((section) => ({ ...section, ids: kept.get(section.key) })), ...now];
  }
  const moved = drawn.current.some((section, at) => section.key !== wanted[at]?.key || section.ids.some((id, place) => id !== wanted[at].ids[place]));
  return [drawn.current, moved, () => { drawn.current = wanted; set({}); }];
}

function useHeld(place) {
  const [held, setHeld] = useState(false);
  useEffect(() => {
    const list = place.current;
    let pointer = false;
    let touched = 0;
    const settle = () => setHeld(pointer || list.contains(document.activeElement) || Date.now() - touched < HELD_AFTER_TOUCH_MS);
    const over = (event) => { if (event.pointerType === "mouse") { pointer = true; settle(); } };
    const out = (event) => { if (event.pointerType === "mouse") { pointer = false; settle(); } };
    const touch = () => { touched = Date.now(); settle(); setTimeout(settle, HELD_AFTER_TOUCH_MS + 50); };
    const late = () => setTimeout(settle);
    list.addEventListener("pointerenter", over);
    list.addEventListener("pointermove", over);
    list.addEventListener("pointerleave", out);
    list.addEventListener("touchstart", touch, { passive: true });
    list.addEventListener("focusin", late);
    list.addEventListener("focusout", late);
    window.addEventListener("blur", settle);
    return () => window.removeEventListener("blur", settle);
  }, []);
  return held;
}

let chips = { of: null, found: [] };

function findChips() {
  const tags = new Map();
  const groups = new Map();
  for (const row of state.rows.values()) {
    for (const tag of row.tags) tags.set(tag, (tags.get(tag) ?? 0) + 1);
    if (row.group) groups.set(row.group, (groups.get(row.group) ?? 0) + 1);
  }
  return [...[...tags].map(([tag, number]) => [`#${tag}`, number]), ...(groups.size > 1 ? groups : [])].slice(0, 24);
}

function Chips({ words, onPick }) {
  if (chips.of !== state.rows) chips = { of: state.rows, found: findChips() };
  const { found } = chips;
  if (!found.length) return null;
  return html`<div class="chips" role="group" aria-label="Tags and folders">${found.map(([word, number]) => {
    const picked = words.split(" ").includes(word.toLowerCase());
    return html`<button type="button" key=${word} class="chip" aria-pressed=${picked} onClick=${() => onPick(word, picked)}>
      <bdi>${plain(word, 40)}</bdi><span class="number">${number}</span></button>`;
  })}</div>`;
}

export function setShape(shape) {
  remember("shape", shape);
  set({});
}

export const shapeNow = () => (remembered("shape", "tile") === "row" ? "row" : "tile");

function Nothing({ words, onClear }) {
  if (words) {
    return html`<div class="empty"><h2>No session matches</h2><p>None of ${count(state.rows.size, "session")} has these words.</p>
      <button type="button" onClick=${onClear}>Clear the filter</button></div>`;
  }
  return html`<div class="empty"><${Picture} name="tiles"/><h2>No sessions yet</h2>
    <p>A session is a program on a terminal of its own, which goes on when this page is closed.</p>
    ${may("create") && html`<button type="button" class="primary" onClick=${() => openSheet("start")}>Start a session</button>`}
    <p class="hint">or in a terminal: <code>tmuxctl new work -- bash</code></p></div>`;
}

export function Overview() {
  const place = useRef(null);
  const held = useHeld(place);
  const [words, setWords] = useState(state.view.words ?? "");
  const wanted = words.trim();
  const found = wanted ? sorted().filter((row) => matches(row, wanted)) : sorted();
  const [sections, moved, sortAnew] = useOrder(sectionsOf(found, wanted), held);
  const silent = [...state.machines.values()].filter((one) => one.problem).length;
  const shape = shapeNow();
  const rights = state.me?.rights.join();
  const pick = (word, picked) => setWords((before) => {
    const now = before.split(/\s+/).filter(Boolean);
    return (picked ? now.filter((one) => one !== word.toLowerCase()) : [...now, word.toLowerCase()]).join(" ");
  });
  return html`<main class="overview" aria-label="Sessions">
    <h1 class="aside">Sessions</h1>
    <div class="tools">
      <div class="field find"><${Picture} name="find"/><input id="filter" type="search" value=${words} placeholder="Filter  /" aria-label="Filter the sessions"
        autocomplete="off" spellcheck=${false} onInput=${(event) => setWords(event.target.value)}
        onKeyDown=${(event) => {
          if (event.key === "Escape") { setWords(""); event.target.blur(); }
          if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); focusOn(sections.find((one) => one.ids.length)?.ids[0]); }
        }}/></div>
      <${TeamsLink}/>
      <p class="summary" role="status">${state.asking ? html`<strong>${state.asking} of ${count(state.rows.size, "session")} ${state.asking === 1 ? "needs" : "need"} you</strong>`
        : state.rows.size ? `${count(state.rows.size, "session")}, none needs you` : ""}${silent ? ` · ${count(silent, "machine")} ${silent === 1 ? "does" : "do"} not answer` : ""}</p>
      <button type="button" class=${`quiet sort${moved ? "" : " hidden"}`} disabled=${!moved} onClick=${sortAnew}>Sort again</button>
      <div class="switch" role="group" aria-label="Shape of the list">
        <button type="button" class="quiet icon" aria-pressed=${shape === "tile"} aria-label="Tiles" title="Tiles" onClick=${() => setShape("tile")}><${Picture} name="tiles"/></button>
        <button type="button" class="quiet icon" aria-pressed=${shape === "row"} aria-label="Rows" title="Rows" onClick=${() => setShape("row")}><${Picture} name="rows"/></button>
      </div>
    </div>
    <${Chips} words=${words} onPick=${pick}/>
    <${List} place=${place} sections=${sections} shape=${shape} label="Sessions, who needs a person first"
      drawHead=${(section, at) => html`<${GroupHead} key=${section.key} section=${section} place=${at}/>`}
      drawRow=${(id, at, among) => state.rows.has(id) && html`<${Tile} key=${id} row=${state.rows.get(id)} shape=${shape} place=${at} among=${among}
        ending=${state.ending.has(id)} link=${state.link} rights=${rights}/>`}/>
    ${!sections.some((one) => one.head || one.ids.length) && (state.loaded ? html`<${Nothing} words=${words} onClear=${() => setWords("")}/>`
      : state.link === "lost" ? html`<div class="empty"><h2>The server does not answer</h2><p>Is it running? This page tries again by itself.</p>
        <p class="hint">on its machine: <code>tmuxctl serve --listen 127.0.0.1:8765</code></p></div>`
      : html`<div class="empty" aria-busy="true"><p>Loading the sessions…</p></div>`)}
  </main>`;
}
