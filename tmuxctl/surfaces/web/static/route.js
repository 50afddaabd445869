// Which view is shown, by the address: `/` is the overview, `/session/ID` one session, `/teams` all teams, `/team/NAME` one run.
import { set, state } from "./state.js";

function viewOf(path) {
  const [, kind, name] = /^\/(session|team)\/([^/]+)$/.exec(path) ?? [];
  if (kind) return { name: kind, id: decodeURIComponent(name) };
  return { name: path === "/teams" ? "teams" : "overview" };
}

// The address of a session's view; the id of one on another machine has a slash in it.
export const pathOf = (id) => `/session/${encodeURIComponent(id)}`;
export const pathOfTeam = (name) => `/team/${encodeURIComponent(name)}`;

let lastId = null; // the session that was looked at last, to come back to its tile

export function go(path) {
  if (path !== location.pathname) history.pushState(null, "", path);
  show();
}

function show() {
  const view = viewOf(location.pathname);
  const before = state.view;
  if (before.name === "session") lastId = before.id;
  set({ view, sheet: null, wanted: view.name === "overview" && before.name === "session" ? lastId : null });
}

export function startRouting() {
  window.addEventListener("popstate", show);
  set({ view: viewOf(location.pathname) });
}
