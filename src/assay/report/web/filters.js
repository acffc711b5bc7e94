// Select and order the rows of a run's table. Pure functions of the index and the query.

export const WORDS = ["status", "reason", "rule", "integrity", "finish"];

// Return the rows whose answer or program contains the text. Everything of the run is unpacked.
export async function searchTexts(index, text, readChunk) {
  const wanted = text.trim().toLowerCase();
  const found = new Set();
  if (!wanted) return found;
  const has = (content) => content !== null && content.toLowerCase().includes(wanted);
  for (const chunk of new Set(index.chunks)) {
    const texts = await readChunk(chunk);
    index.chunks.forEach((number, task) => {
      if (number !== chunk) return;
      texts[index.tasks[task]].samples.forEach((sample, at) => {
        if (has(sample.answer) || has(sample.program)) found.add(index.first[task] + at);
      });
    });
  }
  return found;
}

function matcher(index, query, inTexts) {
  const tests = [];
  for (const name of WORDS) {
    if (!query[name]) continue;
    const wanted = new Set(query[name].split(","));
    const column = index.words[name];
    const admitted = column.of.map((word) => wanted.has(String(word)));
    tests.push((row) => admitted[column.at[row]]);
  }
  if (query.cluster) {
    tests.push((row) => index.clusters.get(index.tasks[index.taskOf[row]]) === query.cluster);
  }
  const text = (query.q || "").trim().toLowerCase();
  if (text) {
    const tasks = index.tasks.map((task) => task.toLowerCase().includes(text));
    const words = ["reason", "rule"].map((name) => [
      index.words[name].at,
      index.words[name].of.map((word) => String(word).toLowerCase().includes(text)),
    ]);
    const details = index.numbers.detail;
    tests.push((row) => (
      tasks[index.taskOf[row]]
      || words.some(([at, of]) => of[at[row]])
      || details[row].toLowerCase().includes(text)
      || (inTexts && inTexts.has(row))
    ));
  }
  return (row) => tests.every((test) => test(row));
}

export function selectSamples(index, query, inTexts = null) {
  const admits = matcher(index, query, inTexts);
  const rows = [];
  for (let row = 0; row < index.size; row += 1) if (admits(row)) rows.push(row);
  return rows;
}

// Tasks with at least one sample that the filters admit. `solved` filters by all of them.
export function selectTasks(index, query, inTexts = null) {
  const seen = new Set(selectSamples(index, query, inTexts).map((row) => index.taskOf[row]));
  const tasks = [];
  index.tasks.forEach((_, task) => {
    if (seen.has(task) && admitsSolved(index, task, query.solved)) tasks.push(task);
  });
  return tasks;
}

function admitsSolved(index, task, wanted) {
  if (!wanted) return true;
  const share = passShare(index, task);
  return { all: share === 1, some: share > 0 && share < 1, none: share === 0 }[wanted];
}

export function countPassed(index, task) {
  return index.rowsOf(task).filter((row) => index.word("status", row) === "pass").length;
}

export function passShare(index, task) {
  return index.counts[task] ? countPassed(index, task) / index.counts[task] : 0;
}

function compareValues(one, other) {
  if (typeof one === "string" || typeof other === "string") {
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }
  return one - other;
}

// Order rows by a value, as `-cpu` or `cpu`. Equal rows stay in the order of the benchmark.
export function order(rows, sort, valueOf) {
  if (!sort) return rows;
  const descending = sort.startsWith("-");
  const name = descending ? sort.slice(1) : sort;
  const sign = descending ? -1 : 1;
  return rows
    .map((row, at) => [row, valueOf(name, row), at])
    .toSorted((one, other) => sign * compareValues(one[1], other[1]) || one[2] - other[2])
    .map(([row]) => row);
}
