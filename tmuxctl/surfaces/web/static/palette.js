// The command palette: every session and everything that can be done here, found by a few letters; and the sheet of keys.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.mjs";
import { endSoon, interrupt } from "./actions.js";
import { api, toLogin } from "./api.js";
import { notificationsOn, switchNotifications } from "./attention.js";
import { closeSheet, Dialog, notify, openSheet } from "./dialog.js";
import { lookOf, StateIcon } from "./icons.js";
import { go, pathOf, pathOfTeam } from "./route.js";
import { may, setTheme, sorted, state, theme } from "./state.js";
import { isOver, setShape, shapeNow } from "./tiles.js";
import { plain } from "./text.js";

// The next session that needs a person, behind the one that is shown.
export function goNext() {
  const needing = sorted().filter((row) => row.needs);
  if (!needing.length) return notify("No session needs you", { seconds: 2 });
  const at = needing.findIndex((row) => row.id === state.view.id);
  go(pathOf(needing[(at + 1) % needing.length].id));
  return undefined;
}

const NEXT_THEME = { system: "light", light: "dark", dark: "system" };
export const THEME_NAMES = { system: "as the system has it", light: "light", dark: "dark" };
export const nextTheme = () => setTheme(NEXT_THEME[theme()]);

function commands() {
  const row = state.view.name === "session" ? state.rows.get(state.view.id) : null;
  const found = [];
  const add = (label, run, keys = "") => found.push({ key: label, label, run, keys });
  if (row) {
    add(`Why is ${row.name} ${row.state}?`, () => openSheet("why", { id: row.id }));
    add(`About ${row.name}: name, tags, note`, () => openSheet("about", { id: row.id }));
    if (may("write") && !isOver(row)) add(`Interrupt ${row.name}`, () => interrupt(row));
    if (may("kill")) add(`${isOver(row) ? "Remove" : "Kill"} ${row.name}`, () => endSoon(row));
    add("All sessions", () => go("/"), "Esc");
  }
  add("Next session that needs you", goNext, "n");
  if (state.teams.length) add("All teams", () => go("/teams"));
  for (const team of state.teams) add(`Team ${team.team}: ${team.state}`, () => go(pathOfTeam(team.team)));
  if (may("create")) add("Start a session", () => openSheet("start"), "s");
  add(shapeNow() === "row" ? "Show tiles" : "Show rows", () => setShape(shapeNow() === "row" ? "tile" : "row"));
  add(`Colours: ${THEME_NAMES[NEXT_THEME[theme()]]}`, nextTheme);
  if ("Notification" in window) add(notificationsOn() ? "Turn notifications off" : "Turn notifications on", switchNotifications);
  add("Keys of this page", () => openSheet("help"), "?");
  if (state.me?.logged_in) add("Sign out", async () => { await api.logout(); toLogin(); });
  return found;
}

export function Palette() {
  const field = useRef(null);
  const list = useRef(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  useLayoutEffect(() => { field.current.focus(); }, []);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (label) => words.every((word) => label.toLowerCase().includes(word));
  const sessions = sorted().map((row) => ({ key: row.id, label: row.name, row, run: () => go(pathOf(row.id)) }))
    .filter(({ row }) => has(`${row.name} ${row.word} ${row.profile} ${row.folder} ${row.tags.join(" ")}`));
  const does = commands().filter(({ label }) => has(label));
  const found = (words.length ? [...sessions, ...does] : [...does, ...sessions]).slice(0, 60);
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => { list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }); }, [chosen, text]);
  const run = (one) => {
    closeSheet();
    if (one) one.run();
  };
  const keys = {
    ArrowDown: () => setAt((chosen + 1) % found.length), ArrowUp: () => setAt((chosen + found.length - 1) % found.length),
    Enter: () => run(found[chosen]),
  };
  return html`<${Dialog} label="Commands and sessions" plainHead>
    <input ref=${field} class="palette-field" type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${found.length ? `palette-${chosen}` : undefined}
      aria-label="Commands and sessions" placeholder="A session, or what to do" value=${text} autocomplete="off" spellcheck=${false}
      onInput=${(event) => { setText(event.target.value); setAt(0); }}
      onKeyDown=${(event) => { if (keys[event.key]) { event.preventDefault(); keys[event.key](); } }}/>
    <ul class="palette-list" id="palette-list" role="listbox" aria-label="Found" ref=${list}>
      ${found.map((one, place) => html`<li key=${one.key} id=${`palette-${place}`} role="option" aria-selected=${place === chosen} class=${one.row ? `look-${lookOf(one.row)}` : ""}
        onMouseMove=${() => setAt(place)} onClick=${() => run(one)}>
        ${one.row ? html`<${StateIcon} look=${lookOf(one.row)}/>` : html`<span class="no-shape" aria-hidden="true">›</span>`}<span class="palette-label"><bdi>${plain(one.label, 100)}</bdi></span>
        <span class="hint">${one.row ? plain(one.row.word, 30) : one.keys && html`<kbd>${one.keys}</kbd>`}</span></li>`)}
    </ul>
    ${!found.length && html`<p class="hint palette-none">Nothing has these words.</p>`}
  </${Dialog}>`;
}

const KEYS = [
  ["Ctrl K", "commands and sessions (⌘ K on a Mac)"], ["/", "filter the sessions"], ["j k ↑ ↓ ← →", "select a session"], ["Enter", "open it"], ["Esc", "back to all sessions"],
  ["n", "the next session that needs you"], ["s", "start a session"], ["v", "tiles or rows"], ["1 … 9", "give the answer with this number (selected session)"], ["?", "this sheet"],
  ["Ctrl .", "leave the terminal; all its other keys go to the program"], ["Ctrl Shift F", "find in the output, in the terminal"], ["Ctrl Shift C V", "copy and paste in the terminal"],
];

export function Help() {
  return html`<${Dialog} label="Keys">
    <dl class="key-list">${KEYS.map(([keys, what]) => html`<div key=${keys}><dt>${keys.split(" ").map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${what}</dd></div>`)}</dl>
    <p class="hint">States: what each shape means</p>
    <ul class="legend" role="list">${[["asking", "wants a decision"], ["input", "waits for input"], ["busy", "works"], ["idle", "takes its next command"], ["starting", "starts"], ["exited", "has ended"], ["failed", "ended badly"], ["lost", "its tmux died"], ["unknown", "nothing tells"]].map(([look, what]) =>
      html`<li key=${look} class=${`look-${look}`}><span class="status"><${StateIcon} look=${look}/></span>${what}</li>`)}</ul>
    <p class="hint">tmuxctl ${plain(state.me?.version ?? "")} on ${plain(state.me?.machine ?? "")}</p>
  </${Dialog}>`;
}
