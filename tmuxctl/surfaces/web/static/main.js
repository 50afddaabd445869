// The page of all sessions: draws the views, and takes the keys that hold everywhere.
//
// api.js asks the server, connection.js keeps state.js fresh, tiles.js is the overview, session.js one session with terminal.js,
// teams.js the runs of teams, start.js starts one session, palette.js finds everything by a few letters. What programs wrote is only ever put into text nodes.
import { html, render, useEffect } from "./vendor/preact.mjs";
import { decide } from "./actions.js";
import { notificationsOn, showAttention, switchNotifications } from "./attention.js";
import { connect } from "./connection.js";
import { Notes, openSheet } from "./dialog.js";
import { Picture } from "./icons.js";
import { goNext, Help, nextTheme, Palette, THEME_NAMES } from "./palette.js";
import { moveBy } from "./list.js";
import { go, startRouting } from "./route.js";
import { NoSession, SessionView } from "./session.js";
import { Start } from "./start.js";
import { listen, may, set, state, theme, useEverything } from "./state.js";
import { TeamList, TeamView, watchTeams } from "./teams.js";
import { Overview, setShape, shapeNow } from "./tiles.js";
import { plain } from "./text.js";
import { Why } from "./why.js";

const LOST_AFTER_MS = 1500;

function Head() {
  const colours = theme();
  return html`<header class="page-head">
    <a class="brand" href="/" onClick=${(event) => { event.preventDefault(); go("/"); }}><img src="/favicon.svg" width="22" height="22" alt=""/>tmuxctl<span class="machine">${plain(state.me?.machine ?? "", 40)}</span></a>
    <div class="head-tools">
      ${state.me?.limited && html`<span class="tag" title="This login is for some sessions only">some sessions</span>`}
      ${state.me && !may("write") && html`<span class="tag">read only</span>`}
      ${may("create") && html`<button type="button" class="primary start" onClick=${() => openSheet("start")}><${Picture} name="plus"/><span>Start</span></button>`}
      <button type="button" class="quiet icon" aria-label="Commands and sessions" title="Commands and sessions (Ctrl+K)" onClick=${() => openSheet("palette")}><${Picture} name="more"/></button>
      ${"Notification" in window && html`<button type="button" class="quiet icon" aria-label="Notifications" aria-pressed=${notificationsOn()} title=${notificationsOn() ? "Notifications are on" : "Notifications are off"} onClick=${switchNotifications}><${Picture} name=${notificationsOn() ? "bell" : "bellOff"}/></button>`}
      <button type="button" class="quiet icon" aria-label=${`Colours: ${THEME_NAMES[colours]}`} title=${`Colours: ${THEME_NAMES[colours]}`} onClick=${nextTheme}><${Picture} name=${{ system: "system", light: "sun", dark: "moon" }[colours]}/></button>
      <button type="button" class="quiet icon help" aria-label="Keys" title="Keys (?)" onClick=${() => openSheet("help")}><${Picture} name="keys"/></button>
    </div>
  </header>`;
}

let lostSince = 0;

// What says that the picture may be old. A server that is started anew is back before it is seen.
function Banner() {
  if (state.link !== "lost") lostSince = 0;
  else lostSince ||= Date.now();
  const shown = lostSince > 0 && Date.now() - lostSince >= LOST_AFTER_MS;
  useEffect(() => {
    if (!lostSince || shown) return undefined;
    const timer = setTimeout(() => set({}), LOST_AFTER_MS);
    return () => clearTimeout(timer);
  });
  return html`<div class=${`banner${shown ? "" : " hidden"}`} role="status">${shown && "The server does not answer. This is what was known last; it is tried again by itself."}</div>`;
}

function Sheet() {
  const { sheet } = state;
  if (!sheet) return null;
  const row = sheet.id && state.rows.get(sheet.id);
  if (sheet.name === "palette") return html`<${Palette}/>`;
  if (sheet.name === "help") return html`<${Help}/>`;
  if (sheet.name === "start" && may("create")) return html`<${Start}/>`;
  if (sheet.name === "why" && row) return html`<${Why} row=${row}/>`;
  return null;
}

function View() {
  if (state.problem) return html`<main class="empty"><h1>Nothing can be shown</h1><p>${plain(state.problem.message)}</p><p class="hint">${plain(state.problem.hint)}</p>
    <a class="button" href="/login">Sign in</a></main>`;
  if (state.view.name === "teams") return html`<${TeamList}/>`;
  if (state.view.name === "team") return html`<${TeamView} key=${state.view.id} name=${state.view.id}/>`;
  if (state.view.name !== "session") return html`<${Overview}/>`;
  const row = state.rows.get(state.view.id);
  if (row && state.me) return html`<${SessionView} key=${row.id} row=${row}/>`;
  const [name, called] = state.view.id.split("/");
  const machine = called && state.machines.get(name);
  if (machine && !machine.known) return html`<main class="empty"><h1>${plain(name, 64)} ${machine.problem ? "does not answer" : "is asked…"}</h1>
    ${machine.problem && html`<p>${plain(machine.problem.message)}</p><p class="hint">${plain(machine.problem.hint)}</p>`}</main>`;
  if (state.whole) return html`<${NoSession}/>`;
  if (state.link === "lost") return html`<main class="empty"><h1>The server does not answer</h1><p>Is it running? This page tries again by itself.</p></main>`;
  return html`<main class="empty" aria-busy="true"><p>Loading the session…</p></main>`;
}

function Page() {
  useEverything();
  return html`<a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.querySelector("main a, main button, main input")?.focus(); }}>To the sessions</a>
    <${Head}/><${Banner}/><${Notes}/><div id="content" class=${`view-${state.view.name}`}><${View}/></div><${Sheet}/>`;
}

// the keys

function answerByNumber(key) {
  const id = document.activeElement?.dataset?.id;
  const row = state.rows.get(id);
  const option = row?.question?.options[Number(key) - 1];
  // what may destroy something is answered by its button, which asks again
  if (option && may("write") && row.question.risk !== "high") decide(row, { option: option.name });
}

const OVERVIEW_KEYS = {
  "j": () => moveBy(1, true), "k": () => moveBy(-1, true), "ArrowRight": () => moveBy(1, true), "ArrowLeft": () => moveBy(-1, true),
  "ArrowDown": () => moveBy(1, false), "ArrowUp": () => moveBy(-1, false), "/": () => document.getElementById("filter")?.focus(),
  "v": () => setShape(shapeNow() === "row" ? "tile" : "row"),
};
const KEYS = { "?": () => openSheet("help"), "n": goNext, "s": () => may("create") && openSheet("start") };

function takeKey(event) {
  if (event.defaultPrevented || event.isComposing) return;
  const typing = event.target.closest?.("input, textarea, select, .live-terminal, dialog");
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
    // in a terminal Ctrl+K is the program's
    if (event.target.closest?.(".live-terminal") && !event.metaKey) return;
    event.preventDefault();
    if (state.sheet?.name !== "palette") openSheet("palette");
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || state.sheet) return;
  if (event.key === "Escape" && state.view.name !== "overview") return void go(state.view.name === "team" ? "/teams" : "/");
  const overview = state.view.name === "overview";
  const act = KEYS[event.key] ?? (overview ? OVERVIEW_KEYS[event.key] : undefined)
    ?? (overview && /^[1-9]$/.test(event.key) ? () => answerByNumber(event.key) : undefined);
  if (!act) return;
  event.preventDefault();
  act();
}

// the service worker

async function installWorker() {
  if (!navigator.serviceWorker || !window.isSecureContext) return;
  let address = "/worker.js";
  // the only address that becomes a script here
  const policy = window.trustedTypes?.createPolicy("tmuxctl", { createScriptURL: () => "/worker.js" });
  if (policy) address = policy.createScriptURL("");
  await navigator.serviceWorker.register(address).catch(() => null);
  navigator.serviceWorker.addEventListener("message", (event) => {
    if (typeof event.data?.show === "string" && /^\/(session\/.*)?$/.test(event.data.show)) go(event.data.show);
  });
}

startRouting();
listen(showAttention);
listen(watchTeams);
const place = document.getElementById("app");
place.replaceChildren();
render(html`<${Page}/>`, place);
document.addEventListener("keydown", takeKey);
window.addEventListener("tmuxctl-show", (event) => go(event.detail));
connect();
installWorker();
