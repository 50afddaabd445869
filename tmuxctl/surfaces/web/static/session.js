// One session: its terminal with all that a person does to it.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.mjs";
import { changeTags, copyText, endSoon, interrupt } from "./actions.js";
import { api } from "./api.js";
import { Dialog, closeSheet, notify, notifyFailure, openSheet } from "./dialog.js";
import { lookOf, Picture, StateIcon } from "./icons.js";
import { KeyRow } from "./keyrow.js";
import { Past } from "./past.js";
import { AnswerLine, Answers } from "./question.js";
import { go } from "./route.js";
import { may, remember, remembered, set, state } from "./state.js";
import { fontFor, LiveTerminal } from "./terminal.js";
import { Ago, isOver } from "./tiles.js";
import { bytes, count, plain, plainLines } from "./text.js";

const LONG_PASTE_LINES = 2;
const FITTED_FONT = 14;

// The terminal that is shown, for tests and for the console.
const shown = { live: null };
window.tmuxctlTerminal = () => shown.live;

function useTerminal(row, box, setStatus, setControl, setLeftOut) {
  const live = useRef(null);
  const id = row.id;
  useEffect(() => {
    const made = new LiveTerminal(id, {
      canWrite: may("write"),
      told: (change) => {
        if ("control" in change) setControl(change.control);
        if ("leftOut" in change) setLeftOut(change.leftOut);
        if (change.unsent) notify("Nothing was typed: the terminal is not connected", { bad: true, seconds: 3 });
        if (change.status) {
          made.ended = change.status === "ended";
          setStatus(change);
        }
      },
    });
    live.current = made;
    shown.live = made;
    made.terminal.attachCustomKeyEventHandler((event) => {
      if (event.type !== "keydown") return true;
      // the way out for a keyboard: all other keys are the program's
      if (event.ctrlKey && event.key === ".") {
        document.getElementById("leave")?.focus();
        return false;
      }
      if (event.metaKey && event.key.toLowerCase() === "k") return false;
      // where nothing can be typed no program wants it
      if (event.key === "Tab" && (!made.canWrite || made.ended)) return false;
      if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "c") {
        if (made.terminal.hasSelection()) copyText(made.terminal.getSelection());
        event.preventDefault();
        return false;
      }
      if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "f") {
        event.preventDefault();
        set({ finding: true });
        return false;
      }
      // Ctrl+Shift+V comes as a paste
      if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "v") return false;
      return true;
    });
    made.open(box.current);
    if (!matchMedia("(pointer: coarse)").matches) made.terminal.focus();
    return () => {
      made.dispose();
      shown.live = null;
      live.current = null;
    };
  }, [id]);

  // every connection of the page makes this one anew
  const first = useRef(state.epoch);
  useEffect(() => {
    if (state.epoch !== first.current) {
      first.current = state.epoch;
      live.current?.renew();
    }
  }, [state.epoch]);
  // a session that was restored prints again
  const over = isOver(row);
  const before = useRef(over);
  useEffect(() => {
    if (before.current && !over) {
      live.current.ended = false;
      live.current.renew();
    }
    before.current = over;
  }, [over]);
  return live;
}

// The letters as large as the session's own size allows, or the session as large as the window allows.
function useSize(live, row, frame, fits, status) {
  const fitted = useRef("");
  useLayoutEffect(() => { fitted.current = ""; }, [row.id, fits]);
  useLayoutEffect(() => {
    const settle = () => {
      const made = live.current;
      if (!made || !frame.current) return;
      if (fits) {
        made.terminal.options.fontSize = FITTED_FONT;
        if (fitted.current && row.cols) made.resize(row.cols, row.rows);
        fitted.current = made.fitSession(fitted.current);
      } else if (row.cols && row.rows) {
        made.terminal.options.fontSize = fontFor(frame.current.clientWidth - 20, frame.current.clientHeight - 12, row.cols, row.rows);
        made.resize(row.cols, row.rows);
      }
    };
    settle();
    let timer = 0;
    const observer = new ResizeObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(settle, 120);
    });
    observer.observe(frame.current);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [row.id, row.cols, row.rows, fits, status]);
}

function Find({ live, onClose }) {
  const field = useRef(null);
  const [text, setText] = useState("");
  const [found, setFound] = useState(true);
  useEffect(() => { field.current.focus(); }, []);
  const look = (back) => setFound(!text || (back ? live.current.search.findPrevious(text) : live.current.search.findNext(text)));
  return html`<form class="find-bar" role="search" onSubmit=${(event) => { event.preventDefault(); look(true); }}>
    <input ref=${field} type="search" value=${text} aria-label="Find in the output" placeholder="Find in the output" aria-invalid=${!found}
      onInput=${(event) => { setText(event.target.value); setFound(!event.target.value || live.current.search.findPrevious(event.target.value)); }}
      onKeyDown=${(event) => { if (event.key === "Escape") { event.stopPropagation(); onClose(); } }}/>
    <button type="submit">Earlier</button><button type="button" onClick=${() => look(false)}>Later</button>
    <span class="hint" role="status">${found ? "" : "not found"}</span>
    <button type="button" class="quiet icon" aria-label="Close" onClick=${onClose}><${Picture} name="close"/></button>
  </form>`;
}

// Several lines are pasted after a look at them: each may run a command.
function PasteDialog({ text, onDone, onClose }) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  return html`<${Dialog} label=${`Paste ${count(lines.length, "line")}?`} onClose=${onClose}>
    <p>The program may take each line as a command.</p>
    <pre class="scrolls" tabindex="0" aria-label="What is pasted">${plainLines(lines.slice(0, 60).join("\n"))}${lines.length > 60 ? `\n… and ${count(lines.length - 60, "more line")}` : ""}</pre>
    <div class="dialog-foot"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" autofocus onClick=${onDone}>Paste</button></div>
  </${Dialog}>`;
}

function About({ row }) {
  const [tag, setTag] = useState("");
  const [name, setName] = useState(row.name);
  const [mark, setMark] = useState("");
  const facts = [["Command", row.command], ["Profile", row.profile], ["Folder", row.folder], ["Branch", row.branch], ["Title", row.title],
    ["Size", row.cols && `${row.cols}x${row.rows}`], ["Plugins", row.plugins.join(", ")], ["Machine", row.machine ?? state.me.machine],
    ["Shown on", row.attached ? count(row.attached, "terminal") : ""], ["Id", row.id]].filter(([, text]) => text);
  return html`<${Dialog} label=${`About ${plain(row.name, 63)}`}>
    <dl class="facts">${facts.map(([label, text]) => html`<dt key=${label}>${label}</dt><dd><bdi>${plain(text, 400)}</bdi></dd>`)}</dl>
    ${may("write") && html`<form class="labelled" onSubmit=${async (event) => {
      event.preventDefault();
      try { await api.rename(row.id, name); notify("It has its new name", { seconds: 2 }); } catch (error) { notifyFailure(error); }
    }}><label for="about-name">Name</label><span class="answer-line"><input type="text" id="about-name" value=${name} maxlength="63" spellcheck=${false} onInput=${(event) => setName(event.target.value)}/><button type="submit" disabled=${name === row.name || !name}>Rename</button></span></form>`}
    <div class="labelled"><span id="tags-label">Tags</span><div class="chips" role="group" aria-labelledby="tags-label">${row.tags.map((one) => may("write")
      ? html`<button type="button" class="chip" key=${one} aria-label=${`Remove the tag ${one}`} onClick=${() => changeTags(row, [], [one])}>${plain(one, 63)} <span aria-hidden="true">×</span></button>`
      : html`<span class="tag" key=${one}>${plain(one, 63)}</span>`)}${!row.tags.length && html`<span class="hint">none</span>`}</div></div>
    ${may("write") && html`<form class="answer-line" onSubmit=${(event) => { event.preventDefault(); changeTags(row, tag.split(/[\s,]+/).filter(Boolean), []); setTag(""); }}>
      <input type="text" value=${tag} aria-label="A tag to add" placeholder="Add a tag" maxlength="63" spellcheck=${false} onInput=${(event) => setTag(event.target.value)}/><button type="submit" disabled=${!tag.trim()}>Add</button></form>
    <form class="labelled" onSubmit=${async (event) => {
      event.preventDefault();
      try { await api.mark(row.id, mark); setMark(""); notify("The moment is marked: find it again under Earlier", { seconds: 4 }); } catch (error) { notifyFailure(error); }
    }}><label for="about-note">Note at this moment</label><span class="answer-line"><input type="text" id="about-note" value=${mark} maxlength="200" placeholder="A name for this moment" onInput=${(event) => setMark(event.target.value)}/><button type="submit" disabled=${!mark.trim()}>Mark</button></span></form>`}
  </${Dialog}>`;
}

const STATUS = {
  opening: "Connecting…", lost: "Not connected. It comes back by itself, and shows what was printed meanwhile.", ended: "The program has ended.",
};

export function SessionView({ row }) {
  const frame = useRef(null);
  const box = useRef(null);
  const [status, setStatus] = useState({ status: "opening" });
  const [control, setControl] = useState(false);
  const [leftOut, setLeftOut] = useState(0);
  const [past, setPast] = useState(false);
  const [pasted, setPasted] = useState(null);
  const [wanted, setWanted] = useState(remembered("size", "own"));
  const writes = may("write");
  const fits = wanted === "fit" && writes && !isOver(row);
  const live = useTerminal(row, box, setStatus, setControl, setLeftOut);
  useSize(live, row, frame, fits, status.status);
  const finding = state.finding;
  const setFinding = (now) => set({ finding: now });
  const focusTerminal = () => live.current?.terminal.focus();

  // a paste of several lines is shown first
  function paste(text, after = () => {}) {
    const one = text.replace(/\r?\n$/, "");
    const run = () => {
      if (text) live.current?.paste(text);
      after();
      setPasted(null);
      if (!matchMedia("(pointer: coarse)").matches) requestAnimationFrame(focusTerminal);
    };
    if (one.split(/\r\n?|\n/).length >= LONG_PASTE_LINES || text !== one) setPasted({ text, run });
    else run();
  }
  useEffect(() => {
    const taken = (event) => {
      event.preventDefault();
      event.stopPropagation();
      if (writes) paste(event.clipboardData.getData("text/plain"));
    };
    const place = box.current;
    place.addEventListener("paste", taken, true);
    return () => place.removeEventListener("paste", taken, true);
  }, [row.id, writes]);
  useEffect(() => () => set({ finding: false }), [row.id]);

  function setSize(now) {
    remember("size", now);
    setWanted(now);
  }
  function download() {
    const link = document.createElement("a");
    link.href = api.castAddress(row.id);
    link.download = `${row.name}.cast`;
    document.body.append(link);
    link.click();
    link.remove();
  }

  const ending = state.ending.has(row.id);
  const over = isOver(row);
  const note = status.status === "live" ? "" : status.message ? `${plain(status.message)}. ${plain(status.hint ?? "")}` : STATUS[status.status] ?? "";
  // the terminal stands last: in it Tab is the program's, and nothing behind it could be reached
  return html`<main class=${`session look-${lookOf(row)}${row.needs ? " needs" : ""}`} aria-label=${`Session ${plain(row.name, 63)}`}>
    <header class="session-head">
      <button type="button" id="leave" class="quiet icon" aria-label="All sessions" title="All sessions (Esc)" onClick=${() => go("/")}><${Picture} name="back"/></button>
      <div class="session-name"><h1><bdi>${plain(row.name, 63)}</bdi></h1>
        <p><span class="status"><${StateIcon} look=${lookOf(row)}/>${plain(row.word, 40)}</span>
        <span class="where"><bdi>${[row.profile || row.command, row.folder, row.branch && `⎇ ${row.branch}`].filter(Boolean).map((one) => plain(one, 120)).join("  ")}</bdi></span>
        ${leftOut > 0 && html`<span class="left-out hint" title="The terminal begins behind it. The recording has all that is kept.">${bytes(leftOut)} left out</span>`}</p></div>
      <div class="session-tools" role="toolbar" aria-label="Session">
        <button type="button" onClick=${() => openSheet("why", { id: row.id })}>Why</button>
        <button type="button" aria-pressed=${past} onClick=${() => setPast(!past)}>Earlier</button>
        <button type="button" aria-pressed=${Boolean(finding)} onClick=${() => setFinding(!finding)}>Find</button>
        <button type="button" onClick=${() => copyText(live.current.copied())}>Copy</button>
        ${writes && !over && html`<button type="button" aria-pressed=${fits} title="Give the session the size of this window" onClick=${() => setSize(fits ? "own" : "fit")}>Fit</button>`}
        <button type="button" onClick=${download}>Recording</button>
        <button type="button" onClick=${() => openSheet("about", { id: row.id })}>About</button>
        ${writes && !over && html`<button type="button" onClick=${() => interrupt(row)}>Interrupt</button>`}
        ${may("kill") && html`<button type="button" class="danger" disabled=${ending} onClick=${() => endSoon(row)}>${over ? "Remove" : "Kill"}</button>`}
      </div>
    </header>
    <section class="ask" aria-label="What it needs" aria-live="polite">
      ${row.question ? html`<p class="ask-text"><bdi>${plain(row.question.text, 600)}</bdi></p><div class="ask-answers"><${Answers} row=${row}/><${AnswerLine} row=${row}/></div>`
        : html`<p class="ask-text calm">${row.needs ? "It waits for input." : over ? "Nothing runs here any more." : row.wants === "prompt" ? "Ready for its next command." : "Asks nothing."}
          ${!over && html` <span class="hint">Last output <${Ago} since=${row.active}/> ago.</span>`}</p>`}
    </section>
    <div class="terminal-frame" ref=${frame}>
      ${past && html`<${Past} row=${row} box=${frame} onClose=${() => { setPast(false); focusTerminal(); }}/>`}
      ${finding && html`<${Find} live=${live} onClose=${() => { setFinding(false); focusTerminal(); }}/>`}
      <div class="live-terminal" ref=${box}></div>
      <p class=${`terminal-note${note ? "" : " hidden"}`} role="status">${note}</p>
    </div>
    ${writes && !over && html`<${KeyRow} live=${live} control=${control} onPaste=${paste}
      onControl=${(now) => { setControl(now); if (live.current) live.current.holdsControl = now; }}/>`}
    <p class="session-foot">${writes && !over ? html`<kbd>Ctrl</kbd> <kbd>.</kbd> leaves the terminal; all other keys are the program's.` : over ? "Nothing can be typed: the program has ended." : "You may look, not type."}</p>
    ${pasted && html`<${PasteDialog} text=${pasted.text} onDone=${pasted.run} onClose=${() => setPasted(null)}/>`}
    ${state.sheet?.name === "about" && html`<${About} row=${row} onClose=${closeSheet}/>`}
  </main>`;
}

export function NoSession() {
  return html`<main class="empty"><h1>This session is not there</h1><p>It was removed, or this login is not for it.</p>
    <button type="button" class="primary" onClick=${() => go("/")}>All sessions</button></main>`;
}
