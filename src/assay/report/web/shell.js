// What surrounds every page: where the reader is, the theme, and how to get to other pages.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { clean } from "./parts.js";
import { useLoaded } from "./load.js";
import { address } from "./router.js";
import { readEmbedded } from "./source.js";

const THEMES = ["", "light", "dark"];
const THEME_NAMES = { "": "Auto", light: "Light", dark: "Dark" };
const KEYS = [
  ["g", "go to a page"], ["/", "search in the table"], ["j  k", "next, previous problem"],
  ["u", "up to the run"], ["↑  ↓  ↵", "move in a table, open a row"], ["t", "light or dark"], ["?", "this help"],
];

export function Trail({ route, title }) {
  const steps = [["Results", "#overview"]];
  if (route.kind === "board") steps.push(["Leaderboard", "#board"]);
  if (route.kind === "run") steps.push([route.names[0], address(["run", ...route.names], route.query)]);
  if (route.kind === "compare") steps.push([title || "Comparison", address(["compare", ...route.names])]);
  if (route.kind === "model") steps.push([title, address(["model", ...route.names])]);
  if (route.rest.length) steps.push([route.rest[0], ""]);
  return html`<ol>${steps.map(([name, href], at) => html`<li key=${at}>${href && at < steps.length - 1
    ? html`<a href=${href}>${clean(name)}</a>` : html`<span aria-current="page">${clean(name)}</span>`}</li>`)}</ol>`;
}

function useTheme() {
  const root = document.documentElement;
  const [theme, setTheme] = useState(root.dataset.theme || "");
  const change = (next) => {
    setTheme(next);
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    try {
      localStorage.setItem("assay-theme", next);
    } catch { /* a file may have no storage */ }
  };
  return [theme, change];
}

export function Tools({ links }) {
  const [theme, setTheme] = useTheme();
  const [open, setOpen] = useState("");
  const next = () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  useEffect(() => {
    const listen = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, select, textarea, dialog")) return;
      const actions = { t: next, "?": () => setOpen("help"), g: () => setOpen("go"), "/": focusSearch };
      if (!actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  });
  return html`<button type="button" class="quiet" onClick=${() => setOpen("go")}>Go to … <kbd>g</kbd></button>
    <button type="button" class="quiet" aria-label=${`Theme: ${THEME_NAMES[theme]}`} onClick=${next}>${THEME_NAMES[theme]}</button>
    <button type="button" class="quiet" aria-label="Keyboard help" onClick=${() => setOpen("help")}>?</button>
    ${open === "go" && html`<${GoTo} links=${links} onClose=${() => setOpen("")} />`}
    ${open === "licences" && html`<${Licences} onClose=${() => setOpen("")} />`}
    ${open === "help" && html`<${Dialog} title="Keyboard" onClose=${() => setOpen("")}><dl class="keys">${KEYS.map(
      ([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
      <p class="note">This page contains preact, htm and Prism. <button type="button" class="inline"
        onClick=${() => setOpen("licences")}>Licences</button></p><//>`}`;
}

function Licences({ onClose }) {
  const [texts, error] = useLoaded(() => readEmbedded("licences"), []);
  return html`<${Dialog} title="Licences" onClose=${onClose}>${error ? html`<p>${error.message}</p>` : null}
    <div class="licences">${(texts || []).map(([name, text]) => html`<h3 key=${name}>${name}</h3><pre tabindex="0">${text}</pre>`)}</div><//>`;
}

function focusSearch() {
  const field = document.querySelector(".page:not([hidden]) .search input");
  if (field) field.focus();
}

function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  useEffect(() => {
    element.current.showModal();
  }, []);
  return html`<dialog ref=${element} onClose=${onClose} aria-label=${title}
      onClick=${(event) => event.target === element.current && element.current.close()}>
    <div class="dialog"><header><h2>${title}</h2><button type="button" class="quiet"
      onClick=${() => element.current.close()}>Close</button></header>${children}</div></dialog>`;
}

function GoTo({ links, onClose }) {
  const [text, setText] = useState("");
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = links.filter((link) => {
    const name = `${link.title} ${link.group} ${link.key}`.toLowerCase();
    return wanted.every((word) => name.includes(word));
  }).slice(0, 60);
  const go = (key) => {
    location.hash = `#${key}`;
    onClose();
  };
  return html`<${Dialog} title="Go to" onClose=${onClose}>
    <form method="dialog" onSubmit=${(event) => {
      event.preventDefault();
      if (found.length) go(found[0].key);
    }}><input type="search" aria-label="Page" placeholder="Model, benchmark, comparison" value=${text}
      autofocus onInput=${(event) => setText(event.currentTarget.value)} /></form>
    <ul class="go">${found.map((link) => html`<li key=${link.key}><a href=${`#${link.key}`} onClick=${onClose}>
      <span>${clean(link.title)}</span><span class="soft">${clean(link.group)}</span></a></li>`)}</ul><//>`;
}
