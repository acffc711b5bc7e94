// A table of which only the rows in sight exist, so that any number of rows scrolls smoothly.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";

const ROW = 34; // pixels, as in the style sheet
const AROUND = 5; // rows above and below what is in sight
const MOST_PRINTED = 1200;

export function VirtualTable({ columns, rows, sort, onSort, addressOf, label, kind, selected }) {
  const scroller = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(640);
  const [active, setActive] = useState(0);
  const printing = usePrinting();
  const kept = useRef({});
  useLayoutEffect(() => {
    const element = scroller.current;
    const measure = () => setHeight(element.clientHeight || 640);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    setActive((now) => Math.min(now, Math.max(0, rows.length - 1)));
  }, [rows]);
  useEffect(() => {
    if (selected >= 0) {
      setActive(selected);
      centre(scroller.current, selected);
    }
  }, [selected]);

  const first = printing ? 0 : Math.max(0, Math.floor(top / ROW) - AROUND);
  const last = Math.min(rows.length, printing ? MOST_PRINTED : Math.ceil((top + height) / ROW) + AROUND);
  const move = (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
    let next = active + (steps[event.key] || 0);
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = rows.length - 1;
    if (event.key === "Enter" && rows.length) {
      location.hash = addressOf(rows[active]);
      return;
    }
    next = Math.min(Math.max(next, 0), rows.length - 1);
    if (next === active && !steps[event.key]) return;
    event.preventDefault();
    setActive(next);
    reveal(scroller.current, next);
  };
  // Elements are used again for other rows: making new ones is most of the work of scrolling. Rows
  // that stay as they are, which are most of them, are not even compared.
  const shown = [];
  const slots = printing ? MOST_PRINTED : Math.ceil(height / ROW) + 2 * AROUND + 2;
  const before = kept.current.rows === rows && kept.current.columns === columns ? kept.current.shown : new Map();
  const now = new Map();
  for (let at = first; at < last; at += 1) {
    const state = `${at % slots} ${at === active} ${at === selected}`;
    const old = before.get(at);
    const one = old && old.state === state ? old : { state, drawn: html`<${Row} key=${at % slots} at=${at}
      row=${rows[at]} columns=${columns} active=${at === active} chosen=${at === selected}
      href=${addressOf(rows[at])} />` };
    now.set(at, one);
    shown.push(one.drawn);
  }
  kept.current = { rows, columns, shown: now };
  return html`<div class=${`grid ${kind}`} role="table" aria-label=${label}
      aria-rowcount=${rows.length + 1}>
    <div class="grid-head" role="rowgroup"><div class="grid-row" role="row">${columns.map(
      (column) => html`<${Heading} key=${column.name} column=${column} sort=${sort} onSort=${onSort} />`,
    )}</div></div>
    <div class="grid-body" role="rowgroup" tabindex="0" ref=${scroller} onKeyDown=${move}
      style=${{ height: `min(var(--most), ${Math.max(3, rows.length) * ROW}px)` }}
      aria-label=${`${label}, rows`} onScroll=${(event) => setTop(event.currentTarget.scrollTop)}>
      <div class="grid-space" role="presentation" style=${{ height: `${(printing ? last : rows.length) * ROW}px` }}>${shown}</div>
      ${rows.length === 0 && html`<p class="empty">No row matches the filters.</p>`}
    </div>
  </div>`;
}

// Return whether the page is being printed, when rows out of sight exist too.
function usePrinting() {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const begin = () => setPrinting(true);
    const end = () => setPrinting(false);
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, []);
  return printing;
}

// Put a row that is out of sight into the middle.
function centre(element, at) {
  const top = at * ROW - element.scrollTop;
  if (top < 0 || top + ROW > element.clientHeight) {
    element.scrollTop = at * ROW - (element.clientHeight - ROW) / 2;
  }
}

function reveal(element, at) {
  if (at * ROW < element.scrollTop) element.scrollTop = at * ROW;
  const bottom = (at + 1) * ROW - element.clientHeight;
  if (bottom > element.scrollTop) element.scrollTop = bottom;
}

function Heading({ column, sort, onSort }) {
  const key = (sort || "").replace(/^-/, "");
  const order = key !== column.name ? "none" : sort.startsWith("-") ? "descending" : "ascending";
  const kind = column.number ? "cell num" : "cell";
  if (!onSort || column.fixed) {
    return html`<div class=${kind} role="columnheader">${column.title}</div>`;
  }
  const first = column.number ? `-${column.name}` : column.name;
  const second = column.number ? column.name : `-${column.name}`;
  const next = sort === first ? second : sort === second ? "" : first;
  return html`<div class=${kind} role="columnheader" aria-sort=${order}>
    <button type="button" onClick=${() => onSort(next)}>${column.title}</button></div>`;
}

function Row({ at, row, columns, active, chosen, href }) {
  const kind = `grid-row${active ? " active" : ""}${chosen ? " chosen" : ""}`;
  return html`<div class=${kind} role="row" aria-rowindex=${at + 2}
      aria-current=${chosen ? "true" : undefined}
      style=${{ transform: `translateY(${at * ROW}px)` }}>${columns.map((column, number) => {
        const content = column.show(row);
        return html`<div key=${column.name} class=${column.number ? "cell num" : "cell"} role="cell">${
          number === 0 ? html`<a href=${href} tabindex="-1">${content}</a>` : content}</div>`;
      })}</div>`;
}
