// Text as a person reads it: what a program wrote with invisible characters made visible, durations, places.

// control characters, and those that turn the direction of text around or hide it
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

// A program's text on one line; invisible characters stand as escapes, as in `ls` and `top`.
export function plain(text, most = 2000) {
  return String(text ?? "").slice(0, most).replace(INVISIBLE, (one) => {
    if (one === "\n" || one === "\t") return " ";
    const code = one.codePointAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

// The same with its lines kept.
export const plainLines = (text, most = 20000) =>
  String(text ?? "").slice(0, most).split("\n").map((line) => plain(line)).join("\n");

// Characters that turn the direction of text around; a terminal draws each cell where it is.
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
export const withoutDirection = (text) => text.replace(DIRECTION, "");

// Seconds as `ls` tells them: `5s`, `12m`, `3h`, `2d`.
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h`;
  return `${Math.floor(whole / 86400)}d`;
}

// A number of bytes: `812 bytes`, `12 kB`, `3.4 MB`.
export function bytes(number) {
  if (number < 1000) return count(number, "byte");
  const unit = number < 999_500 ? ["kB", 1e3] : number < 999_500_000 ? ["MB", 1e6] : ["GB", 1e9];
  const value = number / unit[1];
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${unit[0]}`;
}

export const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// The time of day of an ISO time, with the day if it is another one than today.
export function clockTime(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "";
  const time = at.toLocaleTimeString([], { hour12: false });
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
}

// A command line as its words, as a shell splits plain ones: quotes and backslashes hold words together, nothing is expanded.
export function splitWords(line) {
  const words = [];
  let word = null;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const one = line[at];
    if (quote) {
      if (one === quote) quote = "";
      else if (one === "\\" && quote === '"' && /["\\$`]/.test(line[at + 1] ?? "")) word += line[(at += 1)];
      else word += one;
    } else if (one === "'" || one === '"') {
      quote = one;
      word ??= "";
    } else if (one === "\\" && at + 1 < line.length) {
      word = (word ?? "") + line[(at += 1)];
    } else if (/\s/.test(one)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? "") + one;
    }
  }
  if (quote) throw new Error(`a quote ${quote} is not closed`);
  if (word !== null) words.push(word);
  return words;
}
