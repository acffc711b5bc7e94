// The table of a run's problems or samples, with filters and sorting.
import { html, useMemo } from "./vendor/preact-htm.js";
import { readIndex } from "./columns.js";
import { countPassed, order, passShare, selectSamples, selectTasks } from "./filters.js";
import { VirtualTable } from "./list.js";
import { useLoaded } from "./load.js";
import { Choice, Failure, Loading, Status, Strip, Toggle, clean } from "./parts.js";
import { address, joinKey } from "./router.js";
import { useTextMatches } from "./search.js";

export function Problems({ source, run, route, onQuery, version }) {
  const [index, error] = useLoaded(() => readIndex(source, joinKey("run", run)), [run, version], true);
  if (error) return html`<${Failure} error=${error} />`;
  if (!index) return html`<${Loading} what="samples" />`;
  if (!index.size) return html`<p class="empty">No samples are stored.</p>`;
  return html`<${Table} source=${source} index=${index} run=${run} query=${route.query} onQuery=${onQuery} />`;
}

function bySample(index) {
  const tokens = index.numbers.tokens.some((count) => count > 0);
  const several = index.mostSamples > 1;
  const number = (name, digits) => (row) => index.number(name, row).toFixed(digits);
  return [
    { name: "task", title: "Problem", show: (row) => clean(index.tasks[index.taskOf[row]]) },
    several && { name: "sample", title: "#", number: true, show: (row) => index.number("sample", row) },
    { name: "status", title: "Status", show: (row) => html`<${Status} status=${index.word("status", row)} />` },
    { name: "reason", title: "Reason", show: (row) => clean(index.word("reason", row)) },
    { name: "rule", title: "Rule", show: (row) => clean(index.word("rule", row)) },
    tokens
      ? { name: "tokens", title: "Tokens", number: true, show: (row) => index.number("tokens", row).toLocaleString("en") }
      : { name: "chars", title: "Chars", number: true, show: (row) => index.number("chars", row).toLocaleString("en") },
    { name: "cpu", title: "CPU s", number: true, show: number("cpu", 3) },
    { name: "mb", title: "MB", number: true, show: number("mb", 1) },
    { name: "detail", title: "Detail", show: (row) => html`<span class="soft">${clean(index.number("detail", row))}</span>` },
  ].filter(Boolean);
}

export function sampleValue(index, name, row) {
  if (name === "task") return index.taskOf[row];
  return Object.hasOwn(index.words, name) ? index.word(name, row) : index.number(name, row);
}

function largest(index, task, name) {
  return index.rowsOf(task).reduce((most, row) => Math.max(most, index.number(name, row)), 0);
}

function programs(index, task) {
  return new Set(index.rowsOf(task).map((row) => index.number("group", row)).filter((n) => n >= 0)).size;
}

function failures(index, task) {
  const found = new Map();
  for (const row of index.rowsOf(task)) {
    if (index.word("status", row) === "pass") continue;
    const reason = index.word("reason", row);
    found.set(reason, (found.get(reason) || 0) + 1);
  }
  return [...found].toSorted((one, other) => other[1] - one[1])
    .map(([reason, count]) => (count > 1 ? `${reason} ${count}` : reason)).join(", ");
}

function byTask(index) {
  return [
    { name: "task", title: "Problem", show: (task) => clean(index.tasks[task]) },
    { name: "share", title: "Passed", number: true, show: (task) => `${countPassed(index, task)} / ${index.counts[task]}` },
    { name: "strip", title: "Samples", fixed: true, show: (task) => html`<${Strip} index=${index} task=${task} />` },
    { name: "programs", title: "Programs", number: true, show: (task) => programs(index, task) },
    { name: "failures", title: "Failures", show: (task) => html`<span class="soft">${clean(failures(index, task))}</span>` },
    { name: "cpu", title: "CPU s", number: true, show: (task) => largest(index, task, "cpu").toFixed(3) },
    { name: "mb", title: "MB", number: true, show: (task) => largest(index, task, "mb").toFixed(1) },
  ];
}

export function taskValue(index, name, task) {
  if (name === "task") return task;
  if (name === "share") return passShare(index, task);
  if (name === "programs") return programs(index, task);
  if (name === "failures") return failures(index, task);
  return largest(index, task, name);
}

function clusterCounts(index) {
  const counts = new Map();
  for (const cluster of index.clusters.values()) counts.set(cluster, (counts.get(cluster) || 0) + 1);
  return [...counts].toSorted((one, other) => other[1] - one[1]).slice(0, 500);
}

function Table({ source, index, run, query, onQuery }) {
  const several = index.mostSamples > 1;
  const view = several && query.view !== "samples" ? "problems" : "samples";
  const change = (name) => (value) => onQuery({ ...query, [name]: value });
  const inTexts = useTextMatches(source, run, index, query);
  const rows = useMemo(() => {
    if (view === "problems") {
      return order(selectTasks(index, query, inTexts), query.sort, (name, task) => taskValue(index, name, task));
    }
    return order(selectSamples(index, query, inTexts), query.sort, (name, row) => sampleValue(index, name, row));
  }, [index, view, JSON.stringify(query), inTexts]);
  const columns = useMemo(() => (view === "problems" ? byTask(index) : bySample(index)), [index, view]);
  const total = view === "problems" ? index.tasks.length : index.size;
  const noun = view === "problems" || !several ? "problems" : "samples";
  const addressOf = (row) => {
    const task = view === "problems" ? row : index.taskOf[row];
    const sample = view === "problems" ? index.first[task] : row;
    const kept = { ...query };
    return address(["run", run, index.tasks[task], index.number("sample", sample)], kept);
  };
  const statuses = index.tally("status");
  const filtered = rows.length < total;
  return html`<section class="problems" aria-label="Problems">
    <div class="bar">
      <h2>${several && view === "samples" ? "Samples" : "Problems"}</h2>
      <span class="soft" role="status">${filtered ? `${rows.length.toLocaleString("en")} of ` : ""}${
        total.toLocaleString("en")} ${noun}</span>
      <span class="gap"></span>
      ${several && html`<${Toggle} label="Rows" value=${view} onChange=${(name) => onQuery({ ...query, view: name === "problems" ? "" : name, sort: "" })}
        options=${[["problems", "Problems"], ["samples", "Samples"]]} />`}
    </div>
    <div class="filters">
      <label class="search"><span class="hidden">Search</span><input type="search"
        placeholder="Search problems and details  ( / )" value=${query.q || ""}
        onInput=${(event) => change("q")(event.currentTarget.value)} /></label>
      <label class="choice"><input type="checkbox" checked=${Boolean(query.code)}
        onChange=${(event) => change("code")(event.currentTarget.checked ? "1" : "")} /> in code</label>
      <${Toggle} label="Status" value=${query.status || ""} onChange=${change("status")}
        options=${[["", "All", index.size], ...statuses.map(([name, count]) => [name, name, count])]} />
      ${view === "problems" && html`<${Choice} label="Solved" value=${query.solved} onChange=${change("solved")}
        options=${["all", "some", "none"].map((name) => [name, index.tasks.filter((_, task) => {
          const share = passShare(index, task);
          return { all: share === 1, some: share > 0 && share < 1, none: share === 0 }[name];
        }).length])} />`}
      <${Choice} label="Reason" value=${query.reason} options=${index.tally("reason")} onChange=${change("reason")} />
      <${Choice} label="Rule" value=${query.rule} options=${index.tally("rule")} onChange=${change("rule")} />
      <${Choice} label="Integrity" value=${query.integrity} options=${index.tally("integrity")} onChange=${change("integrity")} />
      <${Choice} label="Finish" value=${query.finish} options=${index.tally("finish")} onChange=${change("finish")} />
      <${Choice} label="Cluster" value=${query.cluster} options=${clusterCounts(index)} onChange=${change("cluster")} />
      ${filtered && html`<button type="button" class="quiet" onClick=${() => onQuery({ view: query.view, sort: query.sort })}>Clear</button>`}
    </div>
    <${VirtualTable} columns=${columns} rows=${rows} sort=${query.sort || ""} onSort=${change("sort")}
      addressOf=${addressOf} label=${noun} kind=${view === "problems" ? "by-task" : several ? "by-sample numbered" : "by-sample"} selected=${-1} />
  </section>`;
}
