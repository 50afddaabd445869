// Why a session has its state, as a panel to read: the verdict, and each piece of evidence in the order in which it counts.
import { html, useEffect, useState } from "./vendor/preact.mjs";
import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { duration, plain } from "./text.js";

const SURE = { sure: "Nothing else fits the evidence.", likely: "Most programs that look like this do so.", guess: "There is little to go by." };

export function Why({ row }) {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  const look = () => api.explain(row.id).then(setFound, setProblem);
  useEffect(() => { look(); }, [row.id]);
  return html`<${Dialog} label=${`Why is ${plain(row.name, 63)} ${plain(found?.state ?? row.state)}?`} wide>
    ${problem && html`<div class="problem"><p>${plain(problem.message)}</p><p class="hint">${plain(problem.hint)}</p></div>`}
    ${!found && !problem && html`<p aria-busy="true">Looking…</p>`}
    ${found && html`<p class="verdict"><strong>${plain(found.state)}${found.kind ? ` (${plain(found.kind)})` : ""}</strong>, because of <bdi>${plain(found.why)}</bdi>.</p>
      <p class="hint">${plain(found.confidence ?? "")}: ${SURE[found.confidence] ?? ""} ${found.profile ? `Judged by the profile ${plain(found.profile)}.` : "No profile knows this program."}</p>
      <div class="scrolls" tabindex="0" role="region" aria-label="Evidence"><table>
        <thead><tr><th scope="col">Evidence</th><th scope="col">Seen</th><th scope="col" class="for">Speaks for</th><th scope="col" class="number age">Age</th></tr></thead>
        <tbody>${found.reasons.map((reason, at) => html`<tr key=${at} class=${reason.used ? "used" : ""}>
          <th scope="row">${reason.used ? "● " : ""}${plain(reason.source)}</th><td><bdi>${plain(reason.seen, 400)}</bdi></td>
          <td class="for">${reason.state ?? ""}</td><td class="number age">${reason.age === null ? "" : reason.age < 1 ? "now" : duration(reason.age)}</td></tr>`)}</tbody>
      </table></div><p class="hint">● marks what the verdict rests on.</p>
      <div class="dialog-foot"><button type="button" onClick=${look}>Look again</button></div>`}
  </${Dialog}>`;
}
