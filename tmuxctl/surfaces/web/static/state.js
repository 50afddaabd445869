// What the page knows: all sessions, who reads it, how the connection is; and what this browser remembers of a person's choices.
import { useEffect, useState } from "./vendor/preact.mjs";

const listeners = new Set();

export const state = {
  rows: new Map(), // by id, as the server tells them
  machines: new Map(), // other machines by name: {name, known, problem}
  reader: null, // what the server calls this page's stream of rows
  teams: [], // the last run of each team
  asking: 0, // how many sessions need a person
  loaded: false,
  whole: false, // all rows have come once
  wanted: null, // the session whose tile is about to get the focus
  link: "starting", // starting, live, lost
  epoch: 0, // how often the connection was made
  skew: 0, // milliseconds that the server's clock is ahead of ours
  me: null, // who reads: rights, machine, version
  problem: null, // why nothing can be shown: {message, hint}
  view: { name: "overview" },
  ending: new Map(), // sessions that end soon unless the person says otherwise: id -> time
  notes: [], // short notices at the foot of the page
  finding: false, // the field that finds in a terminal's output is open
  sheet: null, // the dialog that is open: {name, ...}
};

// Change some of it and have everything drawn that shows it.
export function set(changes) {
  Object.assign(state, changes);
  for (const listener of [...listeners]) listener();
}

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// For a component: drawn anew when anything changes; changes of one moment are drawn together.
export function useEverything() {
  const [, draw] = useState(0);
  useEffect(() => listen(() => draw((number) => number + 1)), []);
}

export const may = (right) => Boolean(state.me?.rights.includes(right));

// The server's clock now, in milliseconds.
export const serverNow = () => Date.now() + state.skew;

// Sessions in the order of need: who needs a person first, those that are equal by name.
const names = new Intl.Collator(undefined, { numeric: true });
export const byName = names.compare;
export const byNeed = (one, two) =>
  one.rank - two.rank || names.compare(one.name, two.name) || (one.id < two.id ? -1 : 1);

let order = { of: null, rows: [] };

// All rows in that order; sorted again only where a row has changed, from the order before, which is nearly right.
export function sorted() {
  if (order.of !== state.rows) {
    const kept = order.rows.map((row) => state.rows.get(row.id)).filter(Boolean);
    const known = new Set(kept.map((row) => row.id));
    const rows = [...kept, ...[...state.rows.values()].filter((row) => !known.has(row.id))].sort(byNeed);
    order = { of: state.rows, rows };
  }
  return order.rows;
}

const texts = new WeakMap(); // what a filter looks at in each row

function textOf(row) {
  let text = texts.get(row);
  if (text === undefined) {
    text = [row.name, row.word, row.profile, row.command, row.folder, row.branch, row.group, row.title,
      row.question?.text, row.line].join(" ").toLowerCase();
    texts.set(row, text);
  }
  return text;
}

// Whether a session has each word of a filter; `#tag` is a tag.
export function matches(row, words) {
  const text = textOf(row);
  return words.toLowerCase().split(/\s+/).every((word) =>
    word.startsWith("#") ? row.tags.some((tag) => tag.toLowerCase().startsWith(word.slice(1))) : text.includes(word));
}

// What this browser remembers.
export function remembered(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`tmuxctl.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`tmuxctl.${name}`, JSON.stringify(value));
  } catch { /* a browser that keeps nothing */ }
}

export function setTheme(theme) {
  try {
    localStorage.setItem("tmuxctl.theme", theme);
  } catch { /* a browser that keeps nothing */ }
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  window.dispatchEvent(new Event("tmuxctl-theme"));
  set({});
}

export const theme = () => document.documentElement.dataset.theme ?? "system";

export const isDark = () =>
  theme() === "dark" || (theme() === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
