// What a person does to a session. Each asks the server for one operation, and tells a failure with its remedy.
import { api } from "./api.js";
import { notify, notifyFailure } from "./dialog.js";
import { may, set, state } from "./state.js";

const UNDO_SECONDS = 5;

export async function decide(row, answer) {
  try {
    await api.decide(row.id, { id: row.question.id, ...answer });
    return true;
  } catch (error) {
    notifyFailure(error);
    return false;
  }
}

// The keys by which a profile's program is interrupted: those that it names, else Ctrl-C.
async function interruptKeys(profile) {
  if (!profile) return ["C-c"];
  const { text } = await api.profile(profile).catch(() => ({ text: "" }));
  const found = /^interrupt: \[([^\]\n]+)\]$/m.exec(text);
  return found ? found[1].split(",").map((key) => key.trim().replace(/^(['"])(.*)\1$/, "$2")) : ["C-c"];
}

export async function interrupt(row) {
  try {
    const keys = await interruptKeys(row.profile);
    await api.keys(row.id, keys);
    notify(`${keys.join(" ")} was pressed in ${row.name}`, { seconds: 3 });
  } catch (error) {
    notifyFailure(error);
  }
}

// End a session in five seconds, unless the person takes it back or closes the page: only then anything is sent.
export function endSoon(row) {
  if (!may("kill") || state.ending.has(row.id)) return;
  const stop = () => {
    clearTimeout(timer);
    const ending = new Map(state.ending);
    ending.delete(row.id);
    set({ ending });
  };
  const over = row.state === "exited" || row.state === "lost";
  const timer = setTimeout(async () => {
    stop();
    try {
      await api.kill(row.id);
      notify(over ? `${row.name} was removed` : `${row.name} was ended`, { seconds: 3 });
    } catch (error) {
      notifyFailure(error);
    }
  }, UNDO_SECONDS * 1000);
  const forget = notify(over ? `${row.name} is removed in ${UNDO_SECONDS} seconds` : `${row.name} is ended in ${UNDO_SECONDS} seconds`, {
    seconds: UNDO_SECONDS,
    action: { label: "Undo", run: () => { stop(); forget(); } },
  });
  set({ ending: new Map(state.ending).set(row.id, Date.now() + UNDO_SECONDS * 1000) });
}

export async function changeTags(row, tags, remove) {
  try {
    await api.tag(row.id, tags, remove);
  } catch (error) {
    notifyFailure(error);
  }
}

// Text to the clipboard; where the page is not secure by the old way.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "aside";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  notify("Copied", { seconds: 2 });
}
