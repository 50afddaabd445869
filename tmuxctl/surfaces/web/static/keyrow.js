// Keys that a phone's keyboard has not, and a line to type or paste in with its own corrections before it is sent.
import { html, useState } from "./vendor/preact.mjs";

const KEYS = [["esc", "Esc"], ["tab", "Tab"], ["control", "Ctrl"], ["left", "←"], ["down", "↓"], ["up", "↑"], ["right", "→"], ["interrupt", "^C"]];
const NAMES = { esc: "Escape", tab: "Tab", control: "Control with the next key", left: "Left", down: "Down", up: "Up", right: "Right", interrupt: "Control C" };

export function KeyRow({ live, control, onControl, onPaste }) {
  const [text, setText] = useState("");
  const press = (key) => {
    if (key === "control") return onControl(!control);
    live.current?.press(key);
    return undefined;
  };
  const send = (event) => {
    event.preventDefault();
    onPaste(text, () => {
      live.current?.press("enter");
      setText("");
    });
  };
  return html`<div class="key-row">
    <div class="keys" role="group" aria-label="Keys">${KEYS.map(([key, label]) => html`<button type="button" key=${key} aria-label=${NAMES[key]}
      aria-pressed=${key === "control" ? control : undefined} onPointerDown=${(event) => event.preventDefault()} onClick=${() => press(key)}>${label}</button>`)}</div>
    <form class="answer-line" onSubmit=${send}><input type="text" value=${text} aria-label="Type a line" placeholder="Type a line" autocomplete="off"
      autocapitalize="off" spellcheck=${false} enterkeyhint="send" onInput=${(event) => setText(event.target.value)}/><button type="submit" class="primary">Enter</button></form>
  </div>`;
}
