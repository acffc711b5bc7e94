// Compare two texts line by line.

const MOST_CELLS = 4000000; // of the table; larger texts are not aligned

function commonEnds(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (
    end < a.length - start && end < b.length - start
    && a[a.length - 1 - end] === b[b.length - 1 - end]
  ) end += 1;
  return [start, end];
}

// Return steps [kind, i, j]: "same", "removed" (i of a), "added" (j of b).
export function diffLines(a, b) {
  const [start, end] = commonEnds(a, b);
  const steps = [];
  for (let at = 0; at < start; at += 1) steps.push(["same", at, at]);
  middle(a, b, start, end, steps);
  for (let at = end; at > 0; at -= 1) steps.push(["same", a.length - at, b.length - at]);
  return steps;
}

function middle(a, b, start, end, steps) {
  const rows = a.length - start - end;
  const columns = b.length - start - end;
  const width = columns + 1;
  let i = 0;
  let j = 0;
  if (rows * columns <= MOST_CELLS) {
    const longest = new Uint32Array((rows + 1) * width);
    for (let row = rows - 1; row >= 0; row -= 1) {
      for (let column = columns - 1; column >= 0; column -= 1) {
        const here = row * width + column;
        longest[here] = a[start + row] === b[start + column]
          ? longest[here + width + 1] + 1
          : Math.max(longest[here + width], longest[here + 1]);
      }
    }
    while (i < rows && j < columns) {
      const here = i * width + j;
      if (a[start + i] === b[start + j]) {
        steps.push(["same", start + i, start + j]);
        i += 1;
        j += 1;
      } else if (longest[here + width] >= longest[here + 1]) {
        steps.push(["removed", start + i, -1]);
        i += 1;
      } else {
        steps.push(["added", -1, start + j]);
        j += 1;
      }
    }
  }
  for (; i < rows; i += 1) steps.push(["removed", start + i, -1]);
  for (; j < columns; j += 1) steps.push(["added", -1, start + j]);
}

// Put removed and added lines of one place next to each other: [kind, i, j], -1 for an empty side.
export function pairLines(steps) {
  const rows = [];
  let removed = [];
  let added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      const i = at < removed.length ? removed[at] : -1;
      const j = at < added.length ? added[at] : -1;
      rows.push([i < 0 ? "added" : j < 0 ? "removed" : "changed", i, j]);
    }
    removed = [];
    added = [];
  };
  for (const [kind, i, j] of steps) {
    if (kind === "removed") removed.push(i);
    else if (kind === "added") added.push(j);
    else {
      flush();
      rows.push(["same", i, j]);
    }
  }
  flush();
  return rows;
}

const CONTEXT = 3; // unchanged lines that are shown around a change
const LEAST_FOLD = 5; // lines; fewer are shown

// Return the rows in stretches [folded, rows]. Unchanged lines far from changes are folded.
export function foldRows(rows) {
  const near = new Uint8Array(rows.length);
  rows.forEach(([kind], at) => {
    if (kind !== "same") near.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
  });
  if (!near.includes(1)) return [[false, rows]];
  const stretches = [];
  rows.forEach((row, at) => {
    const folded = !near[at];
    const last = stretches[stretches.length - 1];
    if (last && last[0] === folded) last[1].push(row);
    else stretches.push([folded, [row]]);
  });
  return stretches.map(([folded, some]) => [folded && some.length >= LEAST_FOLD, some]);
}

const LEAST_COMMON = 0.4; // of the longer line; other lines have nothing to do with each other

// Return the middle part in which two similar lines differ, as [start, end of one, end of other].
export function changedPart(one, other) {
  const [start, end] = commonEnds(one, other);
  const indent = one.length - one.trimStart().length;
  const common = Math.max(0, start - indent) + end;
  if (common < LEAST_COMMON * Math.max(one.trim().length, other.trim().length)) return null;
  return [start, one.length - end, other.length - end];
}
