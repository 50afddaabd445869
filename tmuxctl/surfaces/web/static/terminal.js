// A session's terminal in the page: xterm.js, fed from the session's journal over a WebSocket.
//
// Each connection begins at the offset that has been reached, so after any break nothing is lost and nothing comes twice. The
// terminal only draws: it never answers a program's queries (tmux has), opens no link and writes no clipboard, whatever is printed.
import { FitAddon } from "./vendor/addon-fit.mjs";
import { SearchAddon } from "./vendor/addon-search.mjs";
import { Unicode11Addon } from "./vendor/addon-unicode11.mjs";
import { Terminal } from "./vendor/xterm.mjs";
import { api, terminalAddress, toLogin } from "./api.js";
import { isDark } from "./state.js";
import { withoutDirection } from "./text.js";

const WHOLE_BYTES = 2 << 20; // a journal up to this length is drawn from its beginning
const TAIL_BYTES = 512 << 10; // else so much of its end, and then the screen as it is
const MOST_WAITING = 4 << 20; // bytes not drawn yet, at which the connection is let go until they are
const FEW_WAITING = 256 << 10;
const FRESH_MS = 5000; // how old a connection is that need not be made anew
const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 10_000;
const OPENING_MS = 10_000;

const FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';

const THEMES = {
  dark: {
    background: "#101216", foreground: "#d9dce3", cursor: "#d9dce3", cursorAccent: "#101216", selectionBackground: "#3d5488",
    black: "#24272e", red: "#ef7a7f", green: "#86c47e", yellow: "#dfb566", blue: "#7ea6f2", magenta: "#c893e0", cyan: "#6cc3c9",
    white: "#c9cdd6", brightBlack: "#7c828f", brightRed: "#ff9a9d", brightGreen: "#a5dc9c", brightYellow: "#f2cf8b",
    brightBlue: "#a3c1ff", brightMagenta: "#dcb1ef", brightCyan: "#92dde2", brightWhite: "#ffffff",
  },
  light: {
    background: "#ffffff", foreground: "#20242c", cursor: "#20242c", cursorAccent: "#ffffff", selectionBackground: "#b9cdf9",
    black: "#20242c", red: "#b3262d", green: "#22701f", yellow: "#835b00", blue: "#2450b5", magenta: "#84309f", cyan: "#0c6a72",
    white: "#6a7080", brightBlack: "#5a606c", brightRed: "#c8373e", brightGreen: "#2c7d28", brightYellow: "#8f6600",
    brightBlue: "#3a64cb", brightMagenta: "#9743b2", brightCyan: "#177780", brightWhite: "#3a3f49",
  },
};

export function makeTerminal(options = {}) {
  const terminal = new Terminal({
    allowProposedApi: true, fontFamily: FONT, fontSize: 14, lineHeight: 1.15, scrollback: 10_000, convertEol: false,
    cursorBlink: false, macOptionIsMeta: true, minimumContrastRatio: 4.5, linkHandler: null, logLevel: "off",
    theme: THEMES[isDark() ? "dark" : "light"], ...options,
  });
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = "11";
  keepSilent(terminal.parser);
  return terminal;
}

// Take away what would do more than draw: links (OSC 8), the clipboard (OSC 52), and every query that xterm.js would answer.
function keepSilent(parser) {
  for (const number of [4, 8, 10, 11, 12, 52, 104, 110, 111, 112]) parser.registerOscHandler(number, () => true);
  for (const prefix of ["", ">", "="]) parser.registerCsiHandler(prefix ? { prefix, final: "c" } : { final: "c" }, () => true);
  for (const prefix of ["", "?"]) parser.registerCsiHandler(prefix ? { prefix, final: "n" } : { final: "n" }, () => true);
  parser.registerCsiHandler({ final: "t" }, () => true);
  parser.registerCsiHandler({ prefix: ">", final: "q" }, () => true);
  for (const prefix of ["", "?"]) {
    parser.registerCsiHandler(prefix ? { prefix, intermediates: "$", final: "p" } : { intermediates: "$", final: "p" }, () => true);
  }
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true);
  parser.registerDcsHandler({ intermediates: "+", final: "q" }, () => true);
  // reports of the focus would be typed into the program with each click
  parser.registerCsiHandler({ prefix: "?", final: "h" }, (numbers) => numbers.length === 1 && numbers[0] === 1004);
}

// The size of letters at which so many columns, and rows where there is room, stand in a box.
export function fontFor(width, height, cols, rows) {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.font = `100px ${FONT}`;
  const ratio = canvas.measureText("M").width / 100;
  const byWidth = width / (cols * ratio);
  const byHeight = height / (rows * 1.15 * 1.17);
  const wanted = byHeight >= 10 ? Math.min(byWidth, byHeight) : byWidth;
  return Math.floor(Math.max(8, Math.min(15, wanted)) * 4) / 4;
}

// `told` gets what changed: {status: "opening" | "live" | "lost" | "ended" | "failed", message, hint, exit}, and {leftOut}: how many
// bytes of the output stand before what is drawn, and are not drawn.
export class LiveTerminal {
  constructor(id, { canWrite, told }) {
    this.id = id;
    this.canWrite = canWrite;
    this.told = told;
    this.terminal = makeTerminal({ disableStdin: !canWrite, cursorInactiveStyle: canWrite ? "outline" : "none" });
    this.fit = new FitAddon();
    this.search = new SearchAddon();
    this.terminal.loadAddon(this.fit);
    this.terminal.loadAddon(this.search);
    this.decoder = new TextDecoder("utf-8");
    this.encoder = new TextEncoder();
    this.offset = null; // behind the last byte that was received
    this.incarnation = "";
    this.repaint = null; // the screen as it is at an offset, where the journal was not drawn from its beginning
    this.waiting = 0;
    this.wait = FIRST_WAIT_MS;
    this.holdsControl = false;
    this.terminal.onData((text) => this.typeText(text));
    this.terminal.onBinary((text) => this.send(Uint8Array.from(text, (one) => one.charCodeAt(0))));
    this.retheme = () => { this.terminal.options.theme = THEMES[isDark() ? "dark" : "light"]; };
    window.addEventListener("tmuxctl-theme", this.retheme);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.retheme);
  }

  open(element) {
    this.terminal.open(element);
    this.run();
  }

  dispose() {
    this.closed = true;
    window.removeEventListener("tmuxctl-theme", this.retheme);
    this.scheme.removeEventListener("change", this.retheme);
    clearTimeout(this.timer);
    clearInterval(this.polling);
    this.socket?.close();
    this.terminal.dispose();
  }

  // the connection

  async run() {
    if (this.closed) return;
    this.told({ status: "opening" });
    try {
      if (this.offset === null) await this.findStart();
      if (!this.closed) this.connect();
    } catch (error) {
      if (error.status === 401) return toLogin();
      if (error.status >= 400 && error.status !== 503 && error.status !== 408) return this.fail(error);
      this.comeBack();
    }
    return undefined;
  }

  // Where to begin: at the journal's beginning, or of a long one near its end.
  async findStart() {
    const shown = await api.show(this.id);
    const at = (cursor) => /^c1:(.*):(\d+)$/.exec(cursor ?? "");
    if (!at(shown.cursor)) {
      this.offset = 0;
      this.incarnation = shown.incarnation ?? "";
      return;
    }
    this.incarnation = at(shown.cursor)[1];
    const end = Number(at(shown.cursor)[2]);
    this.offset = 0;
    if (end <= WHOLE_BYTES) return;
    this.offset = end - TAIL_BYTES;
    this.told({ leftOut: this.offset });
    this.inLine = true; // the first line is not whole
    const screen = await api.screen(this.id, { ansi: true, state: false }).catch(() => null);
    const found = at(screen?.position);
    if (found && found[1] === this.incarnation) this.repaint = { offset: Number(found[2]), screen };
  }

  cursor() {
    return this.incarnation ? `c1:${this.incarnation}:${this.offset}` : String(this.offset);
  }

  connect() {
    const socket = new WebSocket(terminalAddress(this.id, this.cursor()));
    this.socket = socket;
    this.connected = Date.now();
    socket.binaryType = "arraybuffer";
    const opening = setTimeout(() => socket.close(), OPENING_MS);
    let final = null;
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      if (typeof event.data === "string") {
        const message = JSON.parse(event.data);
        if (message.type === "hello") {
          clearTimeout(opening);
          this.wait = FIRST_WAIT_MS;
          this.told({ status: "live" });
        } else if (message.type === "truncated") this.skipTo(message);
        else if (message.type === "exited") final = { status: "ended", exit: message };
        else if (message.type === "error") final = { status: "failed", error: message.error };
      } else this.take(new Uint8Array(event.data));
    };
    socket.onclose = () => {
      clearTimeout(opening);
      if (socket !== this.socket || this.closed) return;
      this.socket = null;
      if (this.drains) return;
      if (final?.status === "ended") return this.told(final);
      if (final) return this.refused(final.error);
      this.comeBack();
    };
    return undefined;
  }

  // Come back soon, and then less and less often.
  comeBack() {
    if (this.closed) return;
    this.told({ status: "lost" });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 1.7, LONGEST_WAIT_MS);
  }

  // The server is there again, or the computer woke: make the connection anew at once.
  renew() {
    if (this.closed || this.polling || this.ended) return;
    // it has come back by itself: what is typed now must not fall into a gap
    if (this.socket && Date.now() - this.connected < FRESH_MS) return;
    clearTimeout(this.timer);
    this.wait = FIRST_WAIT_MS;
    const before = this.socket;
    this.socket = null;
    before?.close();
    this.run();
  }

  refused(error) {
    if (error.reason === "no_journal") return this.poll();
    if (["cursor_lost", "bad_cursor", "other_session"].includes(error.reason)) {
      // the session began a new life: what it printed before is another journal
      this.terminal.reset();
      this.decoder = new TextDecoder("utf-8");
      this.offset = null;
      return this.comeBack();
    }
    this.told({ status: "refused", message: error.message, hint: error.hint });
    return this.comeBack();
  }

  fail(error) {
    this.told({ status: "failed", message: error.message, hint: error.hint });
  }

  // What has no journal, as an adopted pane, is looked at once a second.
  poll() {
    const look = async () => {
      if (document.hidden || this.closed) return;
      try {
        const screen = await api.screen(this.id, { ansi: true, state: false });
        this.terminal.reset();
        this.terminal.write(drawScreen(screen));
        this.told({ status: "live" });
      } catch (error) {
        this.told({ status: "lost", message: error.message });
      }
    };
    look();
    this.polling = setInterval(look, 1000);
  }

  // what is printed

  skipTo({ cursor, missing_bytes: missing }) {
    const found = /^c1:(.*):(\d+)$/.exec(cursor);
    if (!found) return;
    // what was drawn before the gap goes with it
    this.told({ leftOut: this.offset + missing });
    // this cursor stands behind the bytes that come next
    this.skipped = Number(found[2]);
    this.terminal.reset();
    this.decoder = new TextDecoder("utf-8");
  }

  take(bytes) {
    if (this.skipped !== undefined) {
      this.offset = this.skipped - bytes.length;
      this.skipped = undefined;
    }
    const cut = this.repaint ? this.repaint.offset - this.offset : -1;
    this.offset += bytes.length;
    if (cut >= 0 && cut <= bytes.length) {
      const { screen } = this.repaint;
      this.repaint = null;
      this.draw(this.decoder.decode(bytes.subarray(0, cut), { stream: true }), cut);
      this.inLine = false;
      this.draw(drawScreen(screen), 0);
      this.draw(this.decoder.decode(bytes.subarray(cut), { stream: true }), bytes.length - cut);
    } else this.draw(this.decoder.decode(bytes, { stream: true }), bytes.length);
  }

  draw(drawn, size) {
    this.waiting += size;
    let text = drawn;
    if (this.inLine) {
      const end = text.indexOf("\n");
      text = text.slice(end < 0 ? text.length : end + 1);
      this.inLine = end < 0 && size > 0;
    }
    this.terminal.write(withoutDirection(text), () => {
      this.waiting -= size;
      if (this.drains && this.waiting < FEW_WAITING) {
        this.drains = false;
        this.run();
      }
    });
    if (this.waiting > MOST_WAITING && this.socket && !this.drains) {
      // the journal keeps the rest until this much is drawn
      this.drains = true;
      this.socket.close();
    }
  }

  // what is typed

  get isLive() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  send(bytes) {
    if (!this.canWrite || !bytes.length) return;
    if (this.isLive) this.socket.send(bytes);
    else this.told({ status: this.ended ? "ended" : "lost", unsent: true });
  }

  typeText(text) {
    let typed = text;
    if (this.holdsControl && /^[\x40-\x7f]$/.test(text)) {
      typed = String.fromCharCode(text.toUpperCase().charCodeAt(0) & 0x1f);
      this.holdsControl = false;
      this.told({ control: false });
    }
    this.send(this.encoder.encode(typed));
  }

  // Keys of the row below the terminal.
  press(key) {
    const arrows = { up: "A", down: "B", right: "C", left: "D" };
    const plain = { esc: "\x1b", tab: "\t", interrupt: "\x03", enter: "\r" };
    const text = arrows[key] ? (this.terminal.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[") + arrows[key] : plain[key];
    this.typeText(text);
  }

  // Text that was confirmed, as a paste: without what could end it early or press keys.
  paste(text) {
    // eslint-disable-next-line no-control-regex
    this.terminal.paste(text.replace(/\r\n?/g, "\n").replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, ""));
  }

  resize(cols, rows) {
    if (cols >= 2 && rows >= 2 && (cols !== this.terminal.cols || rows !== this.terminal.rows)) this.terminal.resize(cols, rows);
  }

  // Give the session the size that fits into this window, unless that is the one that is `known`: two windows that fit would
  // else change each other's for ever. Returns the size of the window.
  fitSession(known) {
    const size = this.fit.proposeDimensions();
    if (!size || !this.isLive || !this.canWrite) return "";
    if (`${size.cols}x${size.rows}` === known) return known;
    const cols = Math.max(20, Math.min(500, size.cols));
    const rows = Math.max(5, Math.min(200, size.rows));
    this.resize(cols, rows);
    this.socket.send(JSON.stringify({ type: "resize", cols, rows }));
    return `${size.cols}x${size.rows}`;
  }

  // The text that is selected, or the whole screen.
  copied() {
    if (this.terminal.hasSelection()) return this.terminal.getSelection();
    const { active } = this.terminal.buffer;
    const lines = [];
    for (let at = 0; at < this.terminal.rows; at += 1) lines.push(active.getLine(active.viewportY + at)?.translateToString(true) ?? "");
    return lines.join("\n").replace(/\n+$/, "\n");
  }
}

// A screen as the server tells it, as text that draws it: cleared, the rows, the cursor where it is.
export function drawScreen(screen) {
  const { x, y, visible } = screen.cursor;
  const rows = withoutDirection(screen.ansi ?? screen.text).split("\n").slice(0, screen.rows);
  const begin = screen.alt ? "\x1b[?1049h" : "\x1b[?1049l";
  const drawn = rows.map((row, at) => `\x1b[${at + 1};1H\x1b[0m${row}`).join("");
  return `${begin}\x1b[0m\x1b[2J${drawn}\x1b[0m\x1b[${y + 1};${x + 1}H\x1b[?25${visible ? "h" : "l"}`;
}
