// The shapes of the states, so that none is told by its colour alone, and the few other pictures of the page.
import { html } from "./vendor/preact.mjs";

const SHAPES = {
  asking: html`<path d="M2.2 1.9h11.6v9.3H8.3l-3.5 3.2v-3.2H2.2Z" fill="currentColor" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round"/><path d="M6.5 5.3c0-2 3-1.9 3-.1 0 1.2-1.5 1.1-1.5 2.3" fill="none" stroke="var(--surface)" stroke-width="1.5" stroke-linecap="round"/><circle cx="8" cy="9.6" r=".9" fill="var(--surface)"/>`,
  busy: html`<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="2" opacity=".35"/><path class="turns" d="M8 2a6 6 0 0 1 6 6" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round"/>`,
  idle: html`<circle cx="8" cy="8" r="5.6" fill="none" stroke="currentColor" stroke-width="2"/><path d="m5.4 8.1 1.9 1.9 3.4-3.7" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"/>`,
  exited: html`<rect x="2.5" y="2.5" width="11" height="11" rx="2" fill="none" stroke="currentColor" stroke-width="2"/>`,
  failed: html`<rect x="2.5" y="2.5" width="11" height="11" rx="2" fill="none" stroke="currentColor" stroke-width="2"/><path d="M8 5v3.6M8 10.9v.1" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/>`,
  lost: html`<path d="m3 3 10 10M13 3 3 13" stroke="currentColor" stroke-width="2.4" stroke-linecap="round"/>`,
  starting: html`<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="2.2 2.5"/>`,
  input: html`<path d="M3 3.5 8.2 8 3 12.5M9.5 12.5H14" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round"/>`,
  unknown: html`<path d="M3.5 8h9" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" stroke-dasharray="3.4 2.6"/>`,
};

// How a session is shown: its state, apart where it waits for a line, or ended badly.
export function lookOf(row) {
  if (row.state === "exited") return row.exit_status || row.signal ? "failed" : "exited";
  if (row.needs && row.state !== "asking") return "input";
  return SHAPES[row.state] ? row.state : "unknown";
}

export const StateIcon = ({ look }) =>
  html`<svg class=${`shape shape-${look}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">${SHAPES[look]}</svg>`;

const PICTURES = {
  back: "M10 3 5 8l5 5",
  plus: "M8 3v10M3 8h10",
  rows: "M2.5 4h11M2.5 8h11M2.5 12h11",
  tiles: "M2.5 2.5h4.5V7H2.5ZM9 2.5h4.5V7H9ZM2.5 9h4.5v4.5H2.5ZM9 9h4.5v4.5H9Z",
  bell: "M4 11V7.2a4 4 0 0 1 8 0V11l1 1H3ZM6.8 14h2.4",
  bellOff: "M4 11V7.2a4 4 0 0 1 8 0V11l1 1H3ZM6.8 14h2.4M2 2l12 12",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6ZM8 1.2v1.4M8 13.4v1.4M1.2 8h1.4M13.4 8h1.4M3.2 3.2l1 1M11.8 11.8l1 1M12.8 3.2l-1 1M4.2 11.8l-1 1",
  moon: "M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6Z",
  system: "M2 3h12v8H2ZM6 14h4",
  find: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.4 10.4 14 14",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  close: "m4 4 8 8M12 4l-8 8",
  keys: "M2 4h12v8H2ZM4.5 6.5h.01M7 6.5h.01M9.5 6.5h.01M11.8 6.5h.01M5 9.5h6",
};

export const Picture = ({ name }) =>
  html`<svg class="picture" viewBox="0 0 16 16" width="18" height="18" fill="none" stroke="currentColor" stroke-width=${name === "more" ? 2.4 : 1.5} stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${PICTURES[name]}/></svg>`;
