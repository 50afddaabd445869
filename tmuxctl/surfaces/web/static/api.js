// Requests to the server: the operations below /v1, and the stream of tiles. Nothing is sent anywhere else.

// A failure as the server tells it, or the want of an answer.
export class Failure extends Error {
  constructor(status, error) {
    super(error?.message ?? "the server did not answer");
    this.status = status;
    this.reason = error?.reason ?? "no_answer";
    this.hint = error?.hint ?? "";
  }
}

async function failureOf(answer) {
  const told = await answer.json().catch(() => null);
  return new Failure(answer.status, told?.error ?? { message: `the server answered with status ${answer.status}` });
}

export function toLogin() {
  location.assign("/login");
}

async function request(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", redirect: "error", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, { message: "the server does not answer", hint: "it is tried again", reason: "no_answer" });
  }
  if (!answer.ok) throw await failureOf(answer);
  return answer;
}

export async function get(path, signal) {
  return (await request(path, { signal })).json();
}

async function withBody(method, path, body) {
  const answer = await request(path, {
    method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  });
  return answer.status === 204 ? null : answer.json().catch(() => null);
}

const at = (id, rest = "") => `/v1/sessions/${encodeURIComponent(id)}${rest}`;

const teamAt = (name, rest = "") => `/v1/connect/${encodeURIComponent(name)}${rest}`;

export const api = {
  me: (signal) => get("/page/me", signal),
  show: (id, signal) => get(at(id), signal),
  screen: (id, query, signal) => get(at(id, `/screen?${new URLSearchParams(query)}`), signal),
  explain: (id) => get(at(id, "/explain")),
  moments: (id) => get(`/page/sessions/${encodeURIComponent(id)}/moments`),
  // which sessions of other machines are in view, of the reader that the stream of tiles named
  seen: (reader, sessions) => withBody("POST", "/page/seen", { reader, sessions }),
  profiles: () => get("/v1/profiles"),
  profile: (name) => get(`/v1/profiles/${encodeURIComponent(name)}`),
  decide: (id, answer) => withBody("POST", at(id, "/decide"), answer),
  keys: (id, keys) => withBody("POST", at(id, "/keys"), { keys }),
  tag: (id, tags, remove) => withBody("POST", at(id, "/tag"), { tags, remove }),
  mark: (id, text) => withBody("POST", at(id, "/mark"), { text }),
  rename: (id, name) => withBody("PATCH", at(id), { name }),
  kill: (id) => request(at(id), { method: "DELETE" }),
  start: (wanted) => withBody("POST", "/v1/sessions", wanted),
  teams: () => get("/v1/connect"),
  team: (name, signal) => get(teamAt(name), signal),
  endTeam: async (name) => (await request(teamAt(name), { method: "DELETE" })).json(),
  fetchGraph: (name) => request(teamAt(name, "/graph")),
  // `moment` differs where the picture does
  teamGraph: (name, moment) => teamAt(name, `/graph?${new URLSearchParams({ moment })}`),
  teamReport: (name) => teamAt(name, "/report"),
  teamEvents: (name, since) => teamAt(name, `/events?${new URLSearchParams({ since })}`),
  castAddress: (id) => at(id, "/cast"),
  logout: () => request("/logout", { method: "POST", redirect: "manual" }).catch(() => null),
};

// The address of a session's terminal, from a cursor on.
export function terminalAddress(id, since) {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${location.host}${at(id, "/terminal")}?since=${encodeURIComponent(since)}`;
}

// Reads server-sent events (WHATWG HTML, 9.2) until the stream ends; `told` gets each event's name and data, `heard` is called
// for whatever comes. EventSource would neither tell a refusal's status nor let us choose when to come back.
export async function readEvents(path, { told, heard, signal }) {
  const answer = await request(path, { signal, headers: { Accept: "text/event-stream" } });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      let name = "message";
      const data = [];
      for (const line of part.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) data.push(line.slice(6));
      }
      if (data.length) told(name, JSON.parse(data.join("\n")));
    }
  }
}
