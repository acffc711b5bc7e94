// The page of one sample: verdict, program, answer and prompt, and its siblings.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { Code, Unified } from "./code.js";
import { readIndex } from "./columns.js";
import { order, selectSamples, selectTasks } from "./filters.js";
import { useLoaded } from "./load.js";
import { Failure, Loading, Meter, Status, SYMBOLS, Toggle, clean } from "./parts.js";
import { sampleValue, taskValue } from "./problems.js";
import { address, joinKey } from "./router.js";
import { useTextMatches } from "./search.js";

const FINISH = {
  __proto__: null, // an engine can give any reason
  stop: "ended by itself", length: "cut off at the token limit", error: "request failed",
  "prompt-too-long": "the prompt was too long",
};

const ROLES = Object.fromEntries(["system", "user", "assistant"].map((role) => [role, `As assay asks: ${role}`]));
const PARTS = { prefix: "Before the gap", suffix: "After the gap" };

export function SamplePage({ source, route, version }) {
  const [run] = route.names;
  const [task, sample] = route.rest;
  const [index, error] = useLoaded(() => readIndex(source, joinKey("run", run)), [run, version], true);
  if (error) return html`<${Failure} error=${error} />`;
  if (!index) return html`<${Loading} what="the sample" />`;
  const row = index.findRow(task, sample || 0);
  if (row < 0) return html`<${Failure} error=${`${task} is not a problem of this run.`} />`;
  return html`<${Sample} source=${source} run=${run} index=${index} row=${row} query=${route.query} />`;
}

// The rows in the order of the table that the reader came from.
function neighbours(index, row, query, inTexts) {
  const perTask = index.mostSamples > 1 && query.view !== "samples";
  const rows = perTask
    ? order(selectTasks(index, query, inTexts), query.sort, (name, task) => taskValue(index, name, task))
        .map((task) => index.first[task])
    : order(selectSamples(index, query, inTexts), query.sort, (name, at) => sampleValue(index, name, at));
  const here = perTask
    ? rows.findIndex((other) => index.taskOf[other] === index.taskOf[row])
    : rows.indexOf(row);
  return { rows, here, previous: here > 0 ? rows[here - 1] : -1, next: here + 1 < rows.length ? rows[here + 1] : -1 };
}

function Sample({ source, run, index, row, query }) {
  const task = index.taskOf[row];
  const name = index.tasks[task];
  const chunk = joinKey("run", run, "texts", index.chunks[task]);
  const [texts, error] = useLoaded(() => source.block(chunk), [chunk, index], true);
  const { rows, here, previous, next } = neighbours(index, row, query, useTextMatches(source, run, index, query));
  const to = (other) => address(
    ["run", run, index.tasks[index.taskOf[other]], index.number("sample", other)], query,
  );
  useKeys({ j: next >= 0 && to(next), k: previous >= 0 && to(previous), u: address(["run", run], query) });
  const found = texts && Object.hasOwn(texts, name) ? texts[name].samples[row - index.first[task]] : undefined;
  return html`<header class="title sample-title">
      <p class="eyebrow"><a href=${address(["run", run], query)}>${clean(index.model)}</a> · ${clean(index.benchmark)}</p>
      <h1>${clean(name)}${index.counts[task] > 1 ? html` <span class="soft">sample ${index.number("sample", row)}</span>` : ""}</h1>
      <nav class="steps" aria-label="Neighbours">
        <${Step} href=${previous >= 0 && to(previous)} label="Previous" symbol="←" />
        <span class="soft">${here >= 0 ? `${(here + 1).toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "not in the filters"}</span>
        <${Step} href=${next >= 0 && to(next)} label="Next" symbol="→" />
      </nav>
    </header>
    <${Siblings} index=${index} task=${task} row=${row} to=${to} />
    <${Verdict} index=${index} row=${row} found=${found} />
    ${error ? html`<${Failure} error=${error} />` : !found ? html`<${Loading} what="texts" />`
      : html`<${Texts} found=${found} of=${texts[name]} index=${index} row=${row} key=${row} />`}`;
}

function Step({ href, label, symbol }) {
  if (!href) return html`<span class="step off" aria-hidden="true">${symbol}</span>`;
  return html`<a class="step" href=${href} aria-label=${label} title=${label}>${symbol}</a>`;
}

// Go to an address when a key is pressed outside of a field.
export function useKeys(keys) {
  useEffect(() => {
    const listen = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, select, textarea, dialog")) return;
      if (keys[event.key]) location.hash = keys[event.key];
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [JSON.stringify(keys)]);
}

// All samples of a problem; those with the same program stand together.
function Siblings({ index, task, row, to }) {
  const rows = index.rowsOf(task);
  if (rows.length < 2) return null;
  const groups = new Map();
  for (const other of rows) {
    const group = index.number("group", other);
    const key = group < 0 ? `none${other}` : String(group);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(other);
  }
  const passed = rows.filter((other) => index.word("status", other) === "pass").length;
  return html`<section class="siblings" aria-label="All samples of this problem">
    <p class="soft">${passed} of ${rows.length} samples pass · ${groups.size} different programs</p>
    <div class="groups">${[...groups.values()].map((members) => html`<span class="group" key=${members[0]}
        title=${members.length > 1 ? `${members.length} identical programs` : ""}>${members.map((other) => html`<a
          key=${other} href=${to(other)} class=${`chip ${index.word("status", other)}`}
          aria-current=${other === row ? "true" : undefined}
          aria-label=${`sample ${index.number("sample", other)}, ${index.word("status", other)}`}><span
            aria-hidden="true">${SYMBOLS[index.word("status", other)] || "?"}</span> ${
            index.number("sample", other)}</a>`)}</span>`)}</div>
  </section>`;
}

function Verdict({ index, row, found }) {
  const status = index.word("status", row);
  const task = index.tasks[index.taskOf[row]];
  const limits = index.limits || {};
  const ran = index.word("integrity", row) !== "not-run" && index.word("integrity", row) !== "";
  const tokens = index.number("tokens", row);
  return html`<section class=${`verdict-card ${status}`} aria-label="Verdict">
    <div class="verdict-main"><h2 class="hidden">Verdict</h2>
      <p class="verdict-line"><${Status} status=${status} /> <strong>${clean(index.word("reason", row))}</strong>
        ${index.word("integrity", row) === "shared" && html` <span class="tag" title="The program shares an interpreter with its tests.">integrity shared</span>`}
        ${index.number("reused", row) ? html` <span class="tag">reused</span>` : ""}</p>
      ${found && html`<${Failing} found=${found} />`}
    </div>
    <div class="verdict-aside">
      ${ran && html`<${Meter} name="CPU time" value=${index.number("cpu", row)} limit=${index.timeLimits.get(task) || limits.cpu} unit="s" digits=${3} />
      <${Meter} name="Wall time" value=${index.number("wall", row)} limit=${limits.wall} unit="s" digits=${3} />
      <${Meter} name="Memory" value=${index.number("mb", row)} limit=${limits.mb} unit="MB" digits=${1} />`}
      <dl class="facts">
        <div><dt>Answer</dt><dd>${tokens ? `${tokens.toLocaleString("en")} tokens` : `${index.number("chars", row).toLocaleString("en")} characters`}</dd></div>
        <div><dt>Finish</dt><dd>${FINISH[index.word("finish", row)] || clean(index.word("finish", row))}</dd></div>
        <div><dt>Rule</dt><dd>${clean(index.word("rule", row)) || "none"}</dd></div>
        ${found && found.ms > 0 && html`<div><dt>Generated in</dt><dd>${(found.ms / 1000).toFixed(2)} s</dd></div>`}
        ${found && found.logprob !== null && html`<div><dt>Mean log-probability</dt><dd>${found.logprob.toFixed(3)}</dd></div>`}
      </dl>
    </div>
  </section>`;
}

function Failing({ found }) {
  const groups = Object.entries(found.groups);
  return html`${found.error && html`<p class="detail">${clean(found.error)}</p>`}
    ${found.test && html`<div class="test"><h3>Failing test</h3><${Code} text=${found.test} bare label="Failing test" /></div>`}
    ${found.input && html`<div class="test"><h3>Input</h3><pre class="detail" tabindex="0" aria-label="Input">${clean(found.input)}</pre></div>`}
    ${found.actual !== null ? html`<div class="outcome">
        <div><h3>Expected</h3><pre tabindex="0" aria-label="Expected">${clean(found.expected ?? "see the test")}</pre></div>
        <div><h3>Actual</h3><pre tabindex="0" aria-label="Actual">${clean(found.actual) || "nothing"}</pre></div></div>
        ${found.difference && html`<p class="soft">Difference: ${clean(found.difference)}</p>`}`
      : found.detail && html`<div class="test"><h3>Detail</h3><pre class="detail" tabindex="0" aria-label="Detail">${clean(found.detail)}</pre></div>`}
    ${groups.length > 0 && html`<p class="soft cases">${groups.map(([name, [right, all]]) => `${clean(name)} ${right} of ${all} cases`).join(" · ")}</p>`}
    ${found.output && html`<div class="test"><h3>Output</h3><${Code} text=${found.output} plain bare label="Output, its end" /></div>`}`;
}

function Texts({ found, of, index, row }) {
  const hasProgram = found.program !== null && found.program !== "";
  const [view, setView] = useState(hasProgram ? "program" : "answer");
  const options = [
    hasProgram && ["program", "Program"],
    ["answer", "Answer"],
    hasProgram && found.program !== found.answer && ["diff", "Answer → program"],
  ].filter(Boolean);
  const rule = clean(index.word("rule", row)) || "none";
  return html`<section class="texts" aria-label="Texts">
      <div class="bar"><h2>${{ program: "Program", answer: "Answer", diff: "From answer to program" }[view]}</h2>
        <span class="gap"></span>
        <${Toggle} label="Text" value=${view} onChange=${setView} options=${options} /></div>
      ${view === "program" && html`<${Code} key="p" text=${found.program} label=${`Extracted by rule ${rule}`} />`}
      ${view === "answer" && html`<${Code} key="a" text=${found.answer} plain label="As the model wrote it" />`}
      ${view === "diff" && html`<${Unified} key="d" before=${found.answer} after=${found.program} label=${`Rule ${rule}: lines that were dropped and added`} />`}
    </section>
    <section class="texts" aria-label="Prompt"><div class="bar"><h2>${of.prompt ? "Prompt as sent" : "Problem"}</h2></div>
      ${of.prompt ? of.prompt.map(([role, content], at) => html`<${Code} key=${at} text=${content} plain label=${role} />`)
        : html`<p class="note">${clean(index.prompt_note)}</p>${of.statement.map(([role, content], at) => html`<${Code} key=${at} text=${content}
          plain=${role in ROLES} label=${ROLES[role] || PARTS[role] || "Text of the benchmark"} />`)}`}
    </section>`;
}
