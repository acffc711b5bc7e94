// Small parts that several pages use.
import { html } from "./vendor/preact-htm.js";
import { visibleText } from "./visible.js";

export const SYMBOLS = { __proto__: null, pass: "✓", fail: "✕", invalid: "!", "not-judged": "…" };

export function Status({ status }) {
  return html`<span class=${`status ${status}`}><span aria-hidden="true">${
    SYMBOLS[status] || "?"}</span> ${status}</span>`;
}

export function clean(text) {
  return visibleText(String(text));
}

// One mark per sample: filled for a pass, hollow for a failure, so that colour is not needed.
export function Strip({ index, task }) {
  const rows = index.rowsOf(task);
  const shown = rows.slice(0, 24);
  return html`<span class="strip" aria-hidden="true">${shown.map((row) => html`<i key=${row}
    class=${index.word("status", row)}></i>`)}${rows.length > shown.length ? "…" : ""}</span>`;
}

export function Toggle({ options, value, onChange, label }) {
  if (options.length < 2) return null;
  return html`<div class="toggle" role="group" aria-label=${label}>${options.map(
    ([name, title, count]) => html`<button type="button" key=${name}
      aria-pressed=${value === name ? "true" : "false"} onClick=${() => onChange(name)}>${title}${
        count === undefined ? "" : html` <span class="count">${count.toLocaleString("en")}</span>`}
    </button>`,
  )}</div>`;
}

export function Choice({ label, options, value, onChange }) {
  if (options.length < 2 && !value) return null;
  return html`<label class="choice"><span>${label}</span><select value=${value || ""}
      onChange=${(event) => onChange(event.currentTarget.value)}>
    <option value="">all</option>${options.map(([name, count]) => html`<option key=${name}
      value=${name}>${clean(name)} (${count.toLocaleString("en")})</option>`)}
  </select></label>`;
}

export function Meter({ name, value, limit, unit, digits = 2 }) {
  const share = limit ? Math.min(1, value / limit) : 0;
  const most = limit ? ` of ${Number(limit.toFixed(2))}` : "";
  return html`<div class="meter"><span class="what">${name}</span>
    <span class="figure">${value.toFixed(digits)}${most} ${unit}</span>
    ${limit ? html`<span class="track" aria-hidden="true"><i class=${share >= 1 ? "full" : ""}
      style=${{ width: `${100 * share}%` }}></i></span>` : null}</div>`;
}

export function Loading({ what }) {
  return html`<p class="loading" role="status">Loading ${what} …</p>`;
}

export function Failure({ error }) {
  return html`<p class="failure" role="alert">${clean(error.message || error)}</p>`;
}
