// A question that a program asks, with a button for each answer. An answer goes to this very question: if another has taken its
// place meanwhile, the server refuses it.
import { html, useEffect, useState } from "./vendor/preact.mjs";
import { decide } from "./actions.js";
import { may, state } from "./state.js";
import { plain } from "./text.js";

const SHORT = 10; // characters of a label that is never cut
const TAKEN_MS = 2000; // until a program that was answered has drawn something else

// `most`: how many answers have room; the rest stand in the session's own view.
export function Answers({ row, most = 99, onMore }) {
  const { question } = row;
  const [sent, setSent] = useState("");
  const [sure, setSure] = useState("");
  useEffect(() => { setSent(""); setSure(""); }, [question.id]);
  useEffect(() => {
    if (!sure) return undefined;
    const timer = setTimeout(() => setSure(""), 4000);
    return () => clearTimeout(timer);
  }, [sure]);
  if (!may("write")) return null;

  async function answer(name) {
    // what may destroy something takes a second press
    if (question.risk === "high" && sure !== name) return setSure(name);
    setSent(name);
    const done = await decide(row, { option: name });
    // the same question may come again
    setTimeout(() => setSent(""), done ? TAKEN_MS : 0);
    return undefined;
  }

  const shown = question.options.slice(0, question.options.length > most ? most - 1 : most);
  const more = question.options.length > shown.length || question.free || question.secret;
  return html`<div class="answers" role="group" aria-label=${`Answers for ${row.name}`}>
    ${shown.map((option) => html`<button type="button" key=${option.name} title=${plain(option.label)}
      class=${`answer${option.name === question.default ? " default" : ""}${sure === option.name ? " sure" : ""}${option.label.length <= SHORT ? " short" : ""}`}
      disabled=${Boolean(sent) || state.link !== "live"} aria-busy=${sent === option.name}
      onClick=${() => answer(option.name)}><bdi>${sure === option.name ? `Sure? ${plain(option.label, 60)}` : plain(option.label, 60)}</bdi></button>`)}
    ${more && onMore && html`<button type="button" class="answer" onClick=${onMore}>${question.options.length ? "More…" : "Answer…"}</button>`}
  </div>`;
}

// A line to type where any text is an answer, or a password.
export function AnswerLine({ row }) {
  const { question } = row;
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => { setText(""); setBusy(false); }, [question.id]);
  if (!may("write") || !(question.free || question.secret)) return null;
  if (question.secret && !state.me.private) {
    return html`<p class="hint">A password is typed over TLS or the Unix socket only: <code>tmuxctl decide ${row.name}</code></p>`;
  }
  async function send(event) {
    event.preventDefault();
    setBusy(true);
    const done = await decide(row, question.secret ? { secret: text } : { option: text });
    setText("");
    setTimeout(() => setBusy(false), done ? TAKEN_MS : 0);
  }
  return html`<form class="answer-line" onSubmit=${send}>
    <input type=${question.secret ? "password" : "text"} value=${text} autocomplete="off" autocapitalize="off" spellcheck=${false}
      aria-label=${question.secret ? "Password" : "Answer"} placeholder=${question.secret ? "Password" : "Answer"}
      onInput=${(event) => setText(event.target.value)}/>
    <button type="submit" class="primary" disabled=${busy || state.link !== "live"}>Send</button>
  </form>`;
}
