// The runs of teams: the list of them, and one with its agents, who talks to whom, what was said, and what waits for a person.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.mjs";
import { api, Failure, readEvents } from "./api.js";
import { notify, notifyFailure } from "./dialog.js";
import { lookOf, Picture, StateIcon } from "./icons.js";
import { AnswerLine, Answers } from "./question.js";
import { go, pathOf, pathOfTeam } from "./route.js";
import { may, set, state } from "./state.js";
import { clockTime, count, duration, plain, plainLines } from "./text.js";

const LIST_MS = 10_000; // how often the list is asked for while a run goes on
const STATUS_MS = 5000; // and a run that is looked at, on which nothing happens
const TOGETHER_MS = 150; // records this close together are drawn together
const AGAIN_MS = 1500; // until a stream that ended is read again
const SHOWN = 200; // records that are drawn; earlier ones on demand
const TEXT_CHARS = 3000; // of a text that is drawn at first
const SURE_MS = 4000;
const LEAST_SCALE = 0.7; // of a picture; what is wider then is scrolled
const NEAR_END = 40; // pixels from the end of the transcript within which it follows

const LOOKS = { running: "busy", waiting: "asking", stopped: "failed", ended: "exited" };
const isOpen = (team) => team.state === "running" || team.state === "waiting";

// the list

let asked = "";

// Keeps the list fresh: asked for with each connection, when a session of a team comes or goes, and now and then while a run goes on.
export function watchTeams() {
  if (state.link !== "live" || !may("read") || state.me.limited) return;
  const tags = [...state.rows.values()].filter((row) => row.tags.includes("team")).map((row) => row.id);
  const key = [state.epoch, ...tags.sort()].join();
  if (key === asked) return;
  asked = key;
  loadTeams();
}

async function loadTeams() {
  try {
    set({ teams: (await api.teams()).teams });
  } catch { /* it stays as it was */ }
}

setInterval(() => {
  if (!document.hidden && state.link === "live" && state.teams.some(isOpen)) loadTeams();
}, LIST_MS);

const open = (path) => (event) => {
  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(path);
};

// In the overview: the way to the teams, where there are any.
export function TeamsLink() {
  if (!state.teams.length) return null;
  const waiting = state.teams.filter((team) => team.agents.some((agent) => agent.waits)).length;
  return html`<a class="teams-link" href="/teams" onClick=${open("/teams")}>Teams <span class="number">${state.teams.length}</span>${
    waiting > 0 && html` <strong>${waiting === 1 ? "1 needs you" : `${waiting} need you`}</strong>`}</a>`;
}

const RunStatus = ({ team }) => html`<span class="status"><${StateIcon} look=${LOOKS[team.state] ?? "unknown"}/>${plain(team.state, 20)}${
  team.reason ? ` (${plain(team.reason, 40)})` : ""}</span>`;

export function TeamList() {
  return html`<main class="teams" aria-label="Teams">
    <header class="session-head"><button type="button" class="quiet icon" aria-label="All sessions" title="All sessions (Esc)" onClick=${() => go("/")}><${Picture} name="back"/></button><h1>Teams</h1></header>
    <ul class="team-list" role="list">${state.teams.map((team) => html`<li key=${team.team} class=${`look-${LOOKS[team.state] ?? "unknown"}`}>
      <h2><a class="tile-link" href=${pathOfTeam(team.team)} onClick=${open(pathOfTeam(team.team))}><bdi>${plain(team.team, 63)}</bdi></a></h2>
      <${RunStatus} team=${team}/><span class="hint">${team.turns} of ${count(team.turns_most, "turn")}</span><span class="hint">${count(team.agents.length, "agent")}</span>
      <span class="hint">began ${clockTime(team.began)}</span><span class="where hint"><bdi>${plain(team.path, 200)}</bdi></span></li>`)}</ul>
    ${!state.teams.length && html`<div class="empty"><h2>No teams</h2><p>A team is several programs that talk to each other by the rules of a file.</p>
      <p class="hint">in a terminal: <code>tmuxctl connect new dialogue team.yaml</code></p></div>`}
  </main>`;
}

// one run

// The records of the last run of a team, as they come; `told` is called for each change of them.
async function followRecords(team, records, told, signal) {
  let run = "";
  while (!signal.aborted) {
    const last = records.at(-1);
    try {
      await readEvents(api.teamEvents(team, last ? `${run}-${last.n}` : ""), {
        signal, heard: () => {},
        told: (name, record) => {
          if (record.event === "begin") {
            records.length = 0;
            run = record.run;
          }
          records.push(record);
          told();
        },
      });
    } catch (error) {
      if (signal.aborted || (error instanceof Failure && error.status >= 400 && error.status < 500)) return;
    }
    await new Promise((go) => { setTimeout(go, AGAIN_MS); });
  }
}

function useRun(team) {
  const records = useRef([]);
  const [status, setStatus] = useState(null);
  const [failure, setFailure] = useState(null);
  const [, draw] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    records.current = [];
    let timer = 0;
    async function look() {
      try {
        setStatus(await api.team(team, signal));
        setFailure(null);
      } catch (error) {
        if (!signal.aborted && error.status) setFailure(error);
      }
    }
    const told = () => {
      timer ||= setTimeout(() => {
        timer = 0;
        draw((number) => number + 1);
        look();
      }, TOGETHER_MS);
    };
    look();
    followRecords(team, records.current, told, signal);
    const again = setInterval(() => { if (!document.hidden) look(); }, STATUS_MS);
    return () => {
      controller.abort();
      clearTimeout(timer);
      clearInterval(again);
    };
  }, [team]);
  return [status, records.current, failure];
}

const rowOf = (agent) => agent.session && [...state.rows.values()].find((row) => row.name === agent.session);

const NameOf = ({ agent, row }) => row
  ? html`<a href=${pathOf(row.id)} onClick=${open(pathOf(row.id))}><bdi>${plain(agent.name, 63)}</bdi></a>`
  : html`<bdi>${plain(agent.name, 63)}</bdi>`;

// What an agent waits for, with the same buttons as in its session.
function Waiting({ agent, row }) {
  const asked = row?.question;
  return html`<li class="look-asking waiting"><p class="ask-text"><${NameOf} agent=${agent} row=${row}/>: <bdi>${plain(asked?.text ?? agent.waits ?? "It waits for input.", 600)}</bdi></p>
    ${asked && html`<div class="ask-answers"><${Answers} row=${row}/><${AnswerLine} row=${row}/></div>`}</li>`;
}

function AgentLine({ agent, row }) {
  const now = row ? row.word : agent.session ? "ended" : "not started";
  return html`<li class=${`look-${row ? lookOf(row) : "exited"}`}><span class="status"><${StateIcon} look=${row ? lookOf(row) : "exited"}/>${plain(now, 40)}</span>
    <span class="agent-name"><${NameOf} agent=${agent} row=${row}/></span>
    <span class="hint">${agent.turn ? `in its ${agent.turns === 1 ? "first turn" : `turn ${agent.turns}`}, ${duration(agent.seconds ?? 0)}` : count(agent.turns, "turn")}</span>
    <span class="agent-last hint"><bdi>${plain(agent.last, 300)}</bdi></span></li>`;
}

function Graph({ team, agents }) {
  const [problem, setProblem] = useState("");
  const [least, setLeast] = useState(0);
  const states = agents.map((agent) => (agent.waits ? "asking" : rowOf(agent)?.state ?? ""));
  const source = api.teamGraph(team.team, [team.run, ...states].join());
  async function explain() {
    try {
      await api.fetchGraph(team.team);
    } catch (error) {
      setProblem(error.message);
    }
  }
  const described = agents.map((agent, at) => `${agent.name}${states[at] ? ` ${states[at]}` : ""}`).join(", ");
  return html`<section class="team-graph" aria-label="Who talks to whom" tabindex="0">
    ${problem ? html`<p class="hint">${plain(problem, 300)}</p>` : html`<img src=${source} alt=${`Who talks to whom: ${plain(described, 600)}`} style=${{ minWidth: `${least}px` }}
      onLoad=${({ target }) => setLeast(Math.round(target.naturalWidth * LEAST_SCALE))} onError=${explain}/>`}</section>`;
}

const TOLD = {
  begin: "begins with", resumed: "goes on in another process", role: "was given its role, and answered", turn: "is given",
  asking: "asks", paused: "waits: a person types", failed: "failed", skipped: "is left out of this turn",
  stopped: "stopped", end: "ended",
};

// What is not drawn: a turn that an answer gives rise to says the same once more, and who was started stands among the agents.
const HIDDEN = ["continued", "session", "released"];
const isShown = (record) => !HIDDEN.includes(record.event) && (record.event !== "turn" || !record.from);

function RecordText({ text }) {
  const [whole, setWhole] = useState(false);
  const cut = text.length > TEXT_CHARS && !whole;
  return html`<div class="record-text" dir="auto">${plainLines(cut ? text.slice(0, TEXT_CHARS) : text, 1 << 20)}</div>
    ${cut && html`<button type="button" onClick=${() => setWhole(true)}>All ${count(text.length, "character")}</button>`}`;
}

function Record({ record }) {
  const who = record.from ?? (record.event === "turn" ? record.to.join(", ") : "team");
  const what = record.event === "message" ? (record.to.length ? `to ${record.to.join(", ")}` : "says") : TOLD[record.event] ?? record.event;
  const took = typeof record.elapsed === "number" ? duration(record.elapsed) : "";
  const why = typeof record.reason === "string" ? `(${record.reason})` : "";
  return html`<li class=${`record record-${TOLD[record.event] ? record.event : "message"}`}>
    <p class="record-head"><strong><bdi>${plain(who, 120)}</bdi></strong> <bdi>${plain(`${what} ${why}`, 400)}</bdi> <span class="hint">${clockTime(record.at)}${took && `, ${took}`}</span></p>
    ${record.text && html`<${RecordText} text=${record.text}/>`}</li>`;
}

function Transcript({ records }) {
  const place = useRef(null);
  const follows = useRef(true);
  const [most, setMost] = useState(SHOWN);
  const found = records.filter(isShown);
  const shown = found.slice(-most);
  useLayoutEffect(() => {
    if (follows.current) place.current.scrollTop = place.current.scrollHeight;
  });
  const scrolled = ({ target }) => {
    follows.current = target.scrollHeight - target.scrollTop - target.clientHeight < NEAR_END;
  };
  return html`<section class="transcript" aria-label="What was said" tabindex="0" ref=${place} onScroll=${scrolled}>
    ${found.length > shown.length && html`<button type="button" onClick=${() => { follows.current = false; setMost(most + SHOWN); }}>Earlier: ${found.length - shown.length} more</button>`}
    <div role="log" aria-label="Transcript"><ol role="list">${shown.map((record) => html`<${Record} key=${record.n} record=${record}/>`)}</ol></div>
    ${!found.length && html`<p class="hint">Nothing was said yet.</p>`}</section>`;
}

function EndButton({ team }) {
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!sure) return undefined;
    const timer = setTimeout(() => setSure(false), SURE_MS);
    return () => clearTimeout(timer);
  }, [sure]);
  async function end() {
    if (!sure) return setSure(true);
    setBusy(true);
    try {
      const { ended } = await api.endTeam(team.team);
      notify(`${count(ended.length, "session")} of ${team.team} ended`, { seconds: 4 });
    } catch (error) {
      notifyFailure(error);
    }
    setBusy(false);
    return setSure(false);
  }
  return html`<button type="button" class="danger" disabled=${busy} aria-busy=${busy} onClick=${end}>${sure ? "Sure? End all of it" : "End"}</button>`;
}

export function TeamView({ name }) {
  const [team, records, failure] = useRun(name);
  if (failure && !team) {
    return html`<main class="empty"><h1>This run cannot be shown</h1><p>${plain(failure.message, 300)}</p><button type="button" onClick=${() => go("/")}>All sessions</button></main>`;
  }
  if (!team) return html`<main class="empty" aria-busy="true"><p>Loading the run…</p></main>`;
  const over = team.state === "ended";
  const agents = team.agents.map((agent) => ({ agent, row: over ? null : rowOf(agent) }));
  agents.sort((one, two) => one.agent.name.localeCompare(two.agent.name, undefined, { numeric: true }));
  const waiting = agents.filter(({ agent, row }) => row?.question || agent.waits);
  return html`<main class=${`team look-${LOOKS[team.state] ?? "unknown"}`} aria-label=${`Team ${plain(team.team, 63)}`}>
    <header class="session-head">
      <button type="button" class="quiet icon" aria-label="All teams" title="All teams (Esc)" onClick=${() => go("/teams")}><${Picture} name="back"/></button>
      <div class="session-name"><h1><bdi>${plain(team.team, 63)}</bdi></h1>
        <p><${RunStatus} team=${team}/><span class="where">${team.turns} of ${count(team.turns_most, "turn")}${team.output_tokens ? `, ${team.output_tokens} tokens` : ""}</span></p></div>
      <div class="session-tools" role="toolbar" aria-label="Run">
        <a class="plain-button" href=${api.teamReport(team.team)} download=${`${team.team}.md`}>Report</a>
        ${may("kill") && !over && html`<${EndButton} team=${team}/>`}
      </div>
    </header>
    ${team.message && html`<p class="hint team-message"><bdi>${plain(team.message, 400)}</bdi></p>`}
    <section aria-label="What waits for you" aria-live="polite">${waiting.length
      ? html`<ul class="waiting-list" role="list">${waiting.map(({ agent, row }) => html`<${Waiting} key=${agent.name} agent=${agent} row=${row}/>`)}</ul>`
      : !over && html`<p class="hint">Nothing waits for you.</p>`}</section>
    <div class="team-parts">
      <div class="team-side">
        <section aria-label="Agents"><ul class="agent-list" role="list">${agents.map(({ agent, row }) => html`<${AgentLine} key=${agent.name} agent=${agent} row=${row}/>`)}</ul></section>
        <${Graph} team=${team} agents=${team.agents}/>
      </div>
      <${Transcript} records=${records}/>
    </div>
  </main>`;
}
