// Dialogs above the page, and short notices at its foot. A dialog is the browser's own: it holds the focus, and Escape closes it.
import { html, useLayoutEffect, useRef } from "./vendor/preact.mjs";
import { Picture } from "./icons.js";
import { set, state } from "./state.js";

export const openSheet = (name, more = {}) => set({ sheet: { name, ...more } });
export const closeSheet = () => set({ sheet: null });

export function Dialog({ label, wide, plainHead, onClose = closeSheet, children }) {
  const place = useRef(null);
  // before the next key comes
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = place.current;
    let over = false;
    dialog.showModal();
    // a browser may close it without asking first
    dialog.addEventListener("close", () => { if (!over) onClose(); });
    return () => {
      over = true;
      if (dialog.open) dialog.close();
      if (before?.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return html`<dialog ref=${place} class=${wide ? "dialog wide" : "dialog"} aria-label=${label}
    onCancel=${(event) => { event.preventDefault(); onClose(); }}
    onMouseDown=${(event) => { if (event.target === place.current) onClose(); }}>
    <div class="dialog-body">
      ${!plainHead && html`<header class="dialog-head"><h2>${label}</h2>
        <button type="button" class="quiet icon" aria-label="Close" onClick=${onClose}><${Picture} name="close"/></button></header>`}
      ${children}
    </div>
  </dialog>`;
}

let noteNumber = 0;

// Say something for some seconds; `action` is a button: {label, run}. Returns what takes it away.
export function notify(text, { hint = "", action = null, seconds = 6, bad = false } = {}) {
  const note = { number: (noteNumber += 1), text, hint, action, bad };
  const remove = () => set({ notes: state.notes.filter((one) => one !== note) });
  set({ notes: [...state.notes.slice(-3), note] });
  const timer = setTimeout(remove, seconds * 1000);
  return () => {
    clearTimeout(timer);
    remove();
  };
}

export const notifyFailure = (error) =>
  notify(error.message, { hint: error.hint ?? "", bad: true, seconds: 10 });

export function Notes() {
  return html`<div class="notes" role="status" aria-live="polite">
    ${state.notes.map((note) => html`<div key=${note.number} class=${note.bad ? "note bad" : "note"}>
      <p><span class="foreign">${note.text}</span>${note.hint && html`<small class="foreign">${note.hint}</small>`}</p>
      ${note.action && html`<button type="button" onClick=${note.action.run}>${note.action.label}</button>`}
    </div>`)}
  </div>`;
}
