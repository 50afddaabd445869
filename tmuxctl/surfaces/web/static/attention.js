// Tells a person who looks elsewhere that a program asks: by the title, the icon of the tab, and if it was switched on by a
// notification, once for each question.
import { notify } from "./dialog.js";
import { pathOf } from "./route.js";
import { remember, remembered, set, state } from "./state.js";
import { plain } from "./text.js";

const TOLD_MOST = 200; // questions that are remembered as told though they are not asked now
const APART_MOST = 3; // questions at once that are told each by itself

let drawn = null;
let looked = null;

export function showAttention() {
  const row = state.view.name === "session" ? state.rows.get(state.view.id) : null;
  const title = `${state.asking ? `(${state.asking}) ` : ""}${row ? `${plain(row.name, 63)} · ` : ""}tmuxctl`;
  if (document.title !== title) document.title = title;
  const text = state.link === "lost" ? "–" : state.asking > 9 ? "9+" : state.asking ? String(state.asking) : "";
  if (text !== drawn) {
    drawn = text;
    document.getElementById("favicon").href = text ? iconWith(text) : "/favicon.svg";
  }
  if (state.loaded && looked !== state.rows) {
    looked = state.rows;
    notifyOfQuestions();
  }
}

function iconWith(text) {
  const colour = text === "–" ? "%236b7280" : "%23c2570c";
  return `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${colour}"/>`
    + `<text x="16" y="23.5" font-family="sans-serif" font-weight="700" font-size="${text.length > 1 ? 17 : 22}" text-anchor="middle" fill="%23fff">${text}</text></svg>`;
}

export const notificationsOn = () => remembered("notify", false) && "Notification" in window && Notification.permission === "granted";

export async function switchNotifications() {
  if (notificationsOn()) {
    remember("notify", false);
    set({});
    return;
  }
  const allowed = "Notification" in window ? await Notification.requestPermission() : "unsupported";
  remember("notify", allowed === "granted");
  if (allowed === "granted") {
    // what stands there already is known
    remember("told", keysOf([...state.rows.values()]));
    notify("You are told when a session asks", { seconds: 3 });
  } else {
    notify("This browser shows no notifications", { hint: allowed === "denied" ? "allow them for this page in the browser's settings" : "open the page by https or on localhost", bad: true });
  }
  set({});
}

// A question is known by its session and its id; a line that is waited for by the time since when.
const keyOf = (row) => `${row.id} ${row.question?.id ?? row.since}`;
const keysOf = (rows) => rows.filter((row) => row.needs).map(keyOf);

function notifyOfQuestions() {
  if (!notificationsOn()) return;
  // one list for all windows of this browser
  const told = new Set(remembered("told", []));
  const needing = [...state.rows.values()].filter((row) => row.needs);
  const fresh = needing.filter((row) => !told.has(keyOf(row)));
  if (!fresh.length) return;
  const now = keysOf(needing);
  const asked = new Set(now);
  remember("told", [...[...told].filter((key) => !asked.has(key)).slice(-TOLD_MOST), ...now]);
  const unseen = fresh.filter((row) => document.hidden || state.view.name !== "session" || state.view.id !== row.id);
  if (unseen.length > APART_MOST) tellOf({ title: `${unseen.length} sessions need you`, body: unseen.slice(0, 8).map((row) => plain(row.name, 63)).join(", "), tag: "many", path: "/" });
  else unseen.forEach(tell);
}

const tell = (row) => tellOf({
  title: `${plain(row.name, 63)} ${row.question ? "asks" : "waits for input"}`, body: plain(row.question?.text ?? row.line, 200), tag: row.id, path: pathOf(row.id),
});

async function tellOf({ title, body, tag, path }) {
  const options = { body, tag, icon: "/assets/icon-192.png", data: { path } };
  // a phone shows them by the service worker only
  const worker = await navigator.serviceWorker?.getRegistration?.();
  if (worker?.active) {
    worker.showNotification(title, options);
    return;
  }
  const shown = new Notification(title, options);
  shown.onclick = () => {
    window.focus();
    window.dispatchEvent(new CustomEvent("tmuxctl-show", { detail: options.data.path }));
    shown.close();
  };
}
