// Keeps the page's picture of all sessions fresh: one stream of events, made again by itself after a restart of the server,
// a network that was gone, or a computer that slept.
import { api, Failure, readEvents, toLogin } from "./api.js";
import { set, state } from "./state.js";

const SILENT_MS = 40_000; // the server says every 15 s that it is there
const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 10_000;
const OPENING_MS = 15_000; // a connection that is made says something sooner
const ASLEEP_MS = 15_000; // a clock that stood this long was asleep

let controller = null;
let woken = () => {};
let heardAt = 0;

export function connect() {
  run();
  window.addEventListener("online", () => woken());
  window.addEventListener("offline", probe);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    if (state.link === "live") probe();
    else woken();
  });
  let before = Date.now();
  setInterval(() => {
    const now = Date.now();
    if (now - before > ASLEEP_MS) controller?.abort();
    else if (now - heardAt > (state.link === "live" ? SILENT_MS : OPENING_MS)) controller?.abort();
    before = now;
  }, 2000);
}

// Is the server still there? Over loopback it is, without any network.
async function probe() {
  if (state.link !== "live" || !controller) return;
  const mine = controller;
  const timer = setTimeout(() => mine.abort(), 5000);
  try {
    await api.me();
  } catch {
    mine.abort();
  } finally {
    clearTimeout(timer);
  }
}

async function run() {
  let wait = FIRST_WAIT_MS;
  for (;;) {
    controller = new AbortController();
    heardAt = Date.now();
    const before = state.epoch;
    try {
      await follow(controller.signal);
    } catch (error) {
      if (isFinal(error)) return;
    }
    controller.abort();
    set({ link: "lost" });
    if (state.epoch !== before) wait = FIRST_WAIT_MS;
    await new Promise((go) => {
      // not all pages at once
      const timer = setTimeout(go, wait * (0.75 + Math.random() / 2));
      woken = () => {
        clearTimeout(timer);
        go();
      };
    });
    woken = () => {};
    wait = Math.min(wait * 1.7, LONGEST_WAIT_MS);
  }
}

// Whether it is of no use to come back: the login is over, or this token may not read.
function isFinal(error) {
  if (!(error instanceof Failure)) return false;
  if (error.status === 401) {
    toLogin();
    return true;
  }
  if (error.status !== 403) return false;
  set({ problem: { message: error.message, hint: error.hint || "ask for a token with the right to read" } });
  return true;
}

async function follow(signal) {
  const given = AbortSignal.any ? AbortSignal.any([signal, AbortSignal.timeout(8000)]) : signal;
  const me = await api.me(given);
  set({ me });
  heardAt = Date.now();
  await readEvents("/page/tiles", {
    signal,
    heard: () => { heardAt = Date.now(); },
    told: (name, data) => {
      if (name === "tiles") take(data);
    },
  });
}

let coming = null; // all rows anew, until the last of them has come

function take(data) {
  if (data.all) coming = new Map();
  const rows = coming ?? new Map(state.rows);
  for (const id of data.gone) rows.delete(id);
  for (const row of data.rows) rows.set(row.id, row);
  const machines = data.all ? new Map() : new Map(state.machines);
  for (const name of data.machines_gone) machines.delete(name);
  for (const machine of data.machines) machines.set(machine.name, machine);
  const changes = { asking: data.asking, machines, reader: data.reader, skew: Date.parse(data.now) - Date.now(), problem: null };
  // rows that are drawn stay until all have come anew
  if (!coming || !data.more || !state.loaded) Object.assign(changes, { rows: data.more ? new Map(rows) : rows, loaded: true });
  if (!data.more) {
    coming = null;
    changes.whole = true;
  }
  if (data.all) Object.assign(changes, { link: "live", epoch: state.epoch + 1 });
  set(changes);
}
