// Start a session: what is wanted, then what would be done (the operation's own dry run), then the start.
import { html, useEffect, useState } from "./vendor/preact.mjs";
import { api } from "./api.js";
import { closeSheet, Dialog } from "./dialog.js";
import { go, pathOf } from "./route.js";
import { byName, remember, remembered, state } from "./state.js";
import { plain, splitWords } from "./text.js";

const SANDBOXES = [["", "none"], ["read-only", "may read only"], ["workspace", "its folder, no network"], ["workspace+net", "its folder and network"]];

// The body of the request; an Error where a field cannot be read.
async function wish(fields, profiles) {
  const found = { name: fields.name.trim() || null, cwd: fields.folder.trim() || null, machine: fields.machine || null };
  if (fields.kind === "command") {
    found.command = splitWords(fields.command);
    if (!found.command.length) throw new Error("Which command?");
  } else if (fields.kind === "profile") {
    if (!fields.profile) throw new Error("Which profile?");
    found.profile = fields.profile;
    // a profile without a command of its own says how a program looks: that program is started
    const { text } = await api.profile(fields.profile);
    const [program] = profiles.find((one) => one.name === fields.profile)?.programs ?? [];
    if (program && !/^command:/m.test(text)) found.command = [program];
  } else {
    found.candidates = fields.candidates.split(/[\s,]+/).filter(Boolean);
    if (!found.candidates.length) throw new Error("Which profiles, in which order?");
    found.route = fields.route;
  }
  if (fields.worktree.trim()) found.worktree = fields.worktree.trim();
  if (fields.sandbox) found.sandbox = fields.sandbox;
  if (fields.tags.trim()) found.tag = fields.tags.split(/[\s,]+/).filter(Boolean);
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== null));
}

function Problem({ error }) {
  return error && html`<div class="problem" role="alert"><p>${plain(error.message)}</p>${error.hint && html`<p class="hint">${plain(error.hint)}</p>`}</div>`;
}

// A word of a command as it may be read: a long one is cut.
const word = (text) => {
  const one = plain(text, 100);
  return text.length > 100 ? `${one}…` : /[\s'"\\]/.test(one) || !one ? `'${one.replace(/'/g, "'\\''")}'` : one;
};

function Plan({ plan }) {
  const facts = [["Name", plan.name], ["Folder", plan.cwd], ["Size", plan.size], ["Profile", plan.profile], ["Plugins", (plan.plugins ?? []).join(", ")]].filter(([, text]) => text);
  return html`<dl class="facts">${facts.map(([label, text]) => html`<dt key=${label}>${label}</dt><dd><bdi>${plain(text, 300)}</bdi></dd>`)}
      <dt>Runs</dt><dd><code class="command">${(plan.argv ?? []).map(word).join(" ")}</code></dd></dl>
    ${plan.passed?.length > 0 && html`<p class="hint">Passed over: ${plan.passed.map((one) => `${plain(one.profile)} (${plain(one.reason)})`).join(", ")}</p>`}
    <details><summary>All that would be done</summary><pre class="scrolls" tabindex="0">${[`variables: ${(plan.env ?? []).join(" ")}`, `files: ${(plan.files ?? []).join(" ")}`, ...(plan.tmux ?? []).map((line) => `tmux ${line}`)].map((line) => plain(line, 600)).join("\n")}</pre></details>`;
}

export function Start() {
  const [fields, setFields] = useState({ kind: "command", command: "bash", profile: "", candidates: "", route: "first", name: "", machine: "", folder: remembered("folder", ""), worktree: "", sandbox: "", tags: "" });
  const [profiles, setProfiles] = useState([]);
  const [plan, setPlan] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => { api.profiles().then((found) => setProfiles(found.profiles.filter((one) => one.programs.length))).catch(() => {}); }, []);
  const change = (name) => (event) => { setFields({ ...fields, [name]: event.target.value }); setProblem(null); };
  const input = (name, label, more = {}) => html`<div class="labelled"><label for=${`start-${name}`}>${label}</label><input type="text" id=${`start-${name}`} value=${fields[name]} autocomplete="off" autocapitalize="off" spellcheck=${false} onInput=${change(name)} ...${more}/></div>`;

  async function ask(dryRun) {
    setBusy(true);
    setProblem(null);
    try {
      const found = await api.start({ ...(await wish(fields, profiles)), dry_run: dryRun, ...(dryRun ? {} : { wait: false }) });
      if (dryRun) setPlan(found);
      else {
        remember("folder", fields.folder.trim());
        closeSheet();
        go(pathOf(found.machine ? `${found.machine}/${found.id}` : found.id));
      }
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }

  if (plan) {
    return html`<${Dialog} label="This would be started" key="plan">
      <${Plan} plan=${plan}/><${Problem} error=${problem}/>
      <div class="dialog-foot"><button type="button" onClick=${() => { setPlan(null); setProblem(null); }}>Back</button>
        <button type="button" class="primary" autofocus disabled=${busy} onClick=${() => ask(false)}>Start</button></div>
    </${Dialog}>`;
  }
  return html`<${Dialog} label="Start a session" key="fields">
    <form class="fields" onSubmit=${(event) => { event.preventDefault(); ask(true); }}>
      <div class="switch" role="group" aria-label="What runs in it">${[["command", "Command"], ["profile", "Profile"], ["candidates", "Candidates"]].map(([kind, label]) =>
        html`<button type="button" key=${kind} aria-pressed=${fields.kind === kind} onClick=${() => setFields({ ...fields, kind })}>${label}</button>`)}</div>
      ${fields.kind === "command" && input("command", "Command", { placeholder: "python3 -q", autofocus: true })}
      ${fields.kind === "profile" && html`<div class="labelled"><label for="start-profile">Profile</label><select id="start-profile" value=${fields.profile} onChange=${change("profile")}><option value="">Choose a program</option>
        ${profiles.map((one) => html`<option key=${one.name} value=${one.name}>${plain(one.name)}</option>`)}</select></div>`}
      ${fields.kind === "candidates" && html`<div class="pair">${input("candidates", "Profiles, the first that starts", { placeholder: "claude, codex" })}
        <div class="labelled"><label for="start-route">Order</label><select id="start-route" value=${fields.route} onChange=${change("route")}><option value="first">as given</option><option value="cheapest">the cheapest first</option><option value="round-robin">in turn</option></select></div></div>`}
      ${state.machines.size > 0 && html`<div class="labelled"><label for="start-machine">Machine</label><select id="start-machine" value=${fields.machine} onChange=${change("machine")}><option value="">${plain(state.me?.machine || "this machine", 64)}</option>
        ${[...state.machines.keys()].sort(byName).map((name) => html`<option key=${name} value=${name}>${plain(name, 64)}</option>`)}</select></div>`}
      <div class="pair">${input("name", "Name", { placeholder: "after the command", maxlength: 63 })}${input("folder", "Folder", { placeholder: "the server's own" })}</div>
      <div class="pair"><div class="labelled"><label for="start-sandbox">Sandbox</label><select id="start-sandbox" value=${fields.sandbox} onChange=${change("sandbox")}>${SANDBOXES.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select></div>
        ${input("worktree", "Git worktree of the branch", { placeholder: "none" })}</div>
      ${input("tags", "Tags", { placeholder: "none" })}
      <${Problem} error=${problem}/>
      <div class="dialog-foot"><button type="button" onClick=${closeSheet}>Cancel</button><button type="submit" class="primary" disabled=${busy}>See what it does</button></div>
    </form>
  </${Dialog}>`;
}
