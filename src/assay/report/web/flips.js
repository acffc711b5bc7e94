// The problems that changed between two runs, with both programs side by side.
import { html, useMemo } from "./vendor/preact-htm.js";
import { SideBySide } from "./code.js";
import { readIndex } from "./columns.js";
import { VirtualTable } from "./list.js";
import { useLoaded } from "./load.js";
import { Failure, Loading, Status, Toggle, clean } from "./parts.js";
import { address, joinKey, wellFormed } from "./router.js";
import { useKeys } from "./sample.js";

export function Flips({ source, a, b, route, onQuery, version }) {
  const key = joinKey("compare", a, b);
  const [found, error] = useLoaded(() => Promise.all([
    source.block(key), readIndex(source, joinKey("run", a)), readIndex(source, joinKey("run", b)),
  ]), [key, version], true);
  if (error) return html`<${Failure} error=${error} />`;
  if (!found) return html`<${Loading} what="the problems" />`;
  const [block, indexA, indexB] = found;
  return html`<${View} source=${source} block=${block} indexA=${indexA} indexB=${indexB}
    route=${route} onQuery=${onQuery} />`;
}

const KINDS = { gained: "Gained", lost: "Lost", both: "Both pass", neither: "Both fail" };

function sortOut(block) {
  const kinds = new Map();
  block.tasks.forEach((task) => kinds.set(task, ""));
  block.gained.forEach((task) => kinds.set(task, "gained"));
  block.lost.forEach((task) => kinds.set(task, "lost"));
  return block.tasks.map((task, at) => ({
    task, at, passed: block.passed[at], samples: block.samples[at],
    kind: kinds.get(task) || (block.passed[at][0] > 0 ? "both" : "neither"),
  }));
}

function View({ source, block, indexA, indexB, route, onQuery }) {
  const query = route.query;
  const wanted = query.kind || "changed";
  const all = useMemo(() => sortOut(block), [block]);
  const text = (query.q || "").toLowerCase();
  const rows = useMemo(() => all.filter((row) => (
    (wanted === "all" || row.kind === wanted || (wanted === "changed" && (row.kind === "gained" || row.kind === "lost")))
    && row.task.toLowerCase().includes(text)
  )), [all, wanted, text]);
  const counts = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, all.filter((row) => row.kind === kind).length]));
  const chosen = route.rest[0] ? rows.findIndex((row) => wellFormed(row.task) === route.rest[0]) : 0;
  const current = chosen >= 0 ? rows[chosen] : all.find((row) => wellFormed(row.task) === route.rest[0]);
  const to = (row) => address(["compare", block.a, block.b, row.task], query);
  useKeys({
    j: chosen + 1 < rows.length && to(rows[chosen + 1]),
    k: chosen > 0 && to(rows[chosen - 1]),
    u: address(["compare", block.a, block.b], query),
  });
  const several = block.samples.some(([a, b]) => a > 1 || b > 1);
  const columns = [
    { name: "task", title: "Problem", show: (row) => html`<span class=${`flip ${row.kind}`} aria-hidden="true"></span>${clean(row.task)}` },
    several
      ? { name: "shares", title: "A → B", number: true, show: (row) => `${row.passed[0]}/${row.samples[0]} → ${row.passed[1]}/${row.samples[1]}` }
      : { name: "kind", title: "Change", number: true, show: (row) => html`<span class="soft">${row.kind}</span>` },
  ];
  const options = [
    ["changed", "Changed", counts.gained + counts.lost], ["gained", "Gained", counts.gained],
    ["lost", "Lost", counts.lost], ["both", "Both pass", counts.both], ["neither", "Both fail", counts.neither],
  ];
  return html`<section class="flips" aria-label="Problems that changed" id="flips">
    <div class="bar"><h2>Problem by problem</h2>
      <span class="soft">j and k step through the list</span></div>
    <div class="filters">
      <label class="search"><span class="hidden">Search</span><input type="search" placeholder="Search problems  ( / )"
        value=${query.q || ""} onInput=${(event) => onQuery({ ...query, q: event.currentTarget.value })} /></label>
      <${Toggle} label="Outcome" value=${wanted} options=${options}
        onChange=${(kind) => onQuery({ ...query, kind: kind === "changed" ? "" : kind })} />
    </div>
    <div class="master"><${VirtualTable} columns=${columns} rows=${rows} addressOf=${to} label="Problems" kind="flip-list" selected=${chosen} />
      <div class="detail-pane">${current
        ? html`<${Pair} key=${current.task} source=${source} row=${current} block=${block} indexA=${indexA} indexB=${indexB} />`
        : html`<p class="empty">No problem matches.</p>`}</div></div>
  </section>`;
}

// Choose the sample that shows the change: a pass where the run gained, a failure where it lost.
function chooseRow(index, task, wanted) {
  const number = index.taskNumbers.get(wellFormed(task));
  if (number === undefined) return -1;
  const rows = index.rowsOf(number);
  const found = rows.find((row) => (index.word("status", row) === "pass") === wanted);
  return found === undefined ? (rows.length ? rows[0] : -1) : found;
}

async function readSample(source, run, index, row) {
  if (row < 0) return null;
  const task = index.taskOf[row];
  const texts = await source.block(joinKey("run", run, "texts", index.chunks[task]));
  return texts[index.tasks[task]].samples[row - index.first[task]];
}

function Pair({ source, row, block, indexA, indexB }) {
  const passes = { gained: [false, true], lost: [true, false], both: [true, true], neither: [false, false] }[row.kind];
  const rowA = chooseRow(indexA, row.task, passes[0]);
  const rowB = chooseRow(indexB, row.task, passes[1]);
  const [found, error] = useLoaded(() => Promise.all([
    readSample(source, block.a, indexA, rowA), readSample(source, block.b, indexB, rowB),
  ]), [row.task, block]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!found) return html`<${Loading} what="both programs" />`;
  return html`<h3 class="pair-title">${clean(row.task)} <span class=${`kind ${row.kind}`}>${KINDS[row.kind].toLowerCase()}</span></h3>
    <div class="pair-heads"><${Head} letter="A" run=${block.a} index=${indexA} row=${rowA} found=${found[0]} />
      <${Head} letter="B" run=${block.b} index=${indexB} row=${rowB} found=${found[1]} /></div>
    <${SideBySide} left=${programOf(found[0])} right=${programOf(found[1])}
      leftName=${`A · ${clean(indexA.model)}`} rightName=${`B · ${clean(indexB.model)}`} />`;
}

function programOf(found) {
  if (!found) return "";
  return found.program === null || found.program === "" ? found.answer : found.program;
}

function Head({ letter, run, index, row, found }) {
  if (row < 0) return html`<div class="pair-head"><p class="soft">${letter} has no sample.</p></div>`;
  const href = address(["run", run, index.tasks[index.taskOf[row]], index.number("sample", row)]);
  return html`<div class="pair-head"><p><${Status} status=${index.word("status", row)} /> ${clean(index.word("reason", row))}
      <a href=${href} aria-label=${`Open sample of ${letter}`}>open</a></p>
    ${found.test && html`<pre class="mini" tabindex="0" aria-label="Failing test">${clean(found.test)}</pre>`}
    ${found.detail && html`<p class="soft small">${clean(found.detail.slice(0, 400))}</p>`}</div>`;
}
