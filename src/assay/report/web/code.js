// Show code: numbered lines, coloured, and two programs side by side.
import { html, useMemo, useState } from "./vendor/preact-htm.js";
import { highlightLines, splitLines } from "./highlight.js";
import { changedPart, diffLines, foldRows, pairLines } from "./diff.js";
import { visible } from "./visible.js";

const FIRST_LINES = 400;
const MORE_LINES = 4000;
const LINE_PIECE = 4000; // characters of a line that are shown at first

function Pieces({ pieces, part }) {
  if (!part) {
    return pieces.map(([kind, text]) => (
      kind ? html`<span class=${`tok ${kind}`}>${visible(text)}</span>` : visible(text)
    ));
  }
  const shown = [];
  let at = 0;
  for (const [kind, text] of pieces) {
    const cuts = [0, part[0] - at, part[1] - at, text.length]
      .map((cut) => Math.min(Math.max(cut, 0), text.length));
    for (let number = 0; number < 3; number += 1) {
      const piece = text.slice(cuts[number], cuts[number + 1]);
      if (!piece) continue;
      const marked = number === 1 ? " hit" : "";
      shown.push(html`<span class=${`tok ${kind}${marked}`}>${visible(piece)}</span>`);
    }
    at += text.length;
  }
  return shown;
}

function Line({ pieces, part }) {
  const [open, setOpen] = useState(false);
  const length = pieces.reduce((sum, piece) => sum + piece[1].length, 0);
  if (length <= LINE_PIECE || open) return html`<${Pieces} pieces=${pieces} part=${part} />`;
  const text = pieces.map((piece) => piece[1]).join("");
  return html`${visible(text.slice(0, LINE_PIECE))}<button type="button" class="more"
    onClick=${() => setOpen(true)}>… ${(length - LINE_PIECE).toLocaleString("en")} more
    characters</button>`;
}

function CopyButton({ text }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      setDone(false);
    }
  };
  return html`<button type="button" class="quiet" onClick=${copy}>${done ? "Copied" : "Copy"}
  </button>`;
}

export function Code({ text, plain, label, bare }) {
  const [most, setMost] = useState(FIRST_LINES);
  const lines = useMemo(
    () => (plain ? splitLines(text).map((line) => [["", line]]) : highlightLines(text)),
    [text, plain],
  );
  const hidden = lines.length - most;
  return html`<div class=${bare ? "code bare" : "code"}>
    ${!bare && html`<div class="code-tools"><span>${label}</span><${CopyButton} text=${text} /></div>`}
    <pre tabindex="0" aria-label=${label || "Text"}><code class="lines">${lines.slice(0, most).map(
      (pieces, number) => html`<span class="line" key=${number}><${Line} pieces=${pieces} />${"\n"}</span>`,
    )}</code></pre>
    ${hidden > 0 && html`<button type="button" class="more"
      onClick=${() => setMost(most + MORE_LINES)}>${hidden.toLocaleString("en")} more lines</button>`}
  </div>`;
}

function Side({ lines, at, part }) {
  if (at < 0) return html`<td class="n"></td><td class="empty"></td>`;
  return html`<td class="n">${at + 1}</td><td><code><${Line} pieces=${lines[at]} part=${part} />
  </code></td>`;
}

function PairRow({ row, found }) {
  const [kind, i, j] = row;
  const part = kind === "changed" ? changedPart(found.a[i], found.b[j]) : null;
  return html`<tr class=${kind}>
    <${Side} lines=${found.la} at=${i} part=${part && [part[0], part[1]]} />
    <${Side} lines=${found.lb} at=${j} part=${part && [part[0], part[2]]} /></tr>`;
}

function Stretch({ folded, rows, found }) {
  const [open, setOpen] = useState(!folded);
  const [most, setMost] = useState(FIRST_LINES);
  if (!open) {
    return html`<tr class="fold"><td colspan="4"><button type="button" class="more"
      onClick=${() => setOpen(true)}>${rows.length} unchanged lines</button></td></tr>`;
  }
  return html`${rows.slice(0, most).map((row, at) => html`<${PairRow} key=${at} row=${row} found=${found} />`)}
    ${rows.length > most && html`<tr class="fold"><td colspan="4"><button type="button" class="more"
      onClick=${() => setMost(most + MORE_LINES)}>${rows.length - most} more lines</button></td></tr>`}`;
}

// Two programs side by side. Long unchanged stretches are folded.
export function SideBySide({ left, right, leftName, rightName }) {
  const found = useMemo(() => {
    const a = splitLines(left);
    const b = splitLines(right);
    const stretches = foldRows(pairLines(diffLines(a, b)));
    return { a, b, stretches, la: highlightLines(left), lb: highlightLines(right) };
  }, [left, right]);
  return html`${left === right && html`<p class="note same-note">Both programs are the same.</p>`}
    <div class="code side-by-side">
    <table aria-label="Programs side by side">
      <colgroup><col class="n" /><col /><col class="n" /><col /></colgroup>
      <thead><tr><th colspan="2" scope="colgroup">${leftName}</th>
        <th colspan="2" scope="colgroup">${rightName}</th></tr></thead>
      <tbody>${found.stretches.map(([folded, rows], at) => html`<${Stretch} key=${at}
        folded=${folded} rows=${rows} found=${found} />`)}</tbody></table>
  </div>`;
}

// The lines of one text with those that are missing from the other, and those that it adds.
export function Unified({ before, after, label }) {
  const rows = useMemo(() => {
    const a = splitLines(before);
    const b = splitLines(after);
    return diffLines(a, b).map(([kind, i, j]) => [kind, kind === "added" ? b[j] : a[i]]);
  }, [before, after]);
  const [most, setMost] = useState(FIRST_LINES);
  return html`<div class="code"><div class="code-tools"><span>${label}</span></div>
    <pre tabindex="0" aria-label=${label}><code class="unified">${rows.slice(0, most).map(
      ([kind, line], number) => html`<span class=${`line ${kind}`} key=${number}><${Line}
        pieces=${[["", line]]} />${"\n"}</span>`,
    )}</code></pre>
    ${rows.length > most && html`<button type="button" class="more"
      onClick=${() => setMost(most + MORE_LINES)}>${rows.length - most} more lines</button>`}
  </div>`;
}
