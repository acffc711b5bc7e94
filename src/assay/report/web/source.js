// Where sections and data come from: this file, or a server.
import { listen, placeSection } from "./live.js";

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Read a block that the file contains. The element is found by comparing, so no name can confuse.
function findEmbedded(name) {
  for (const element of document.querySelectorAll("script[data-block]")) {
    if (element.dataset.block === name) return element;
  }
  return null;
}

export async function readEmbedded(name) {
  const element = findEmbedded(name);
  if (!element) throw new Error(`This file has no data named ${name}.`);
  return unpack(fromBase64(element.textContent));
}

async function ask(path) {
  const response = await fetch(path, { headers: { accept: "application/json" } });
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(content.error || `The server answered ${response.status}.`);
  return content;
}

export function openEmbedded() {
  const blocks = new Map();
  return {
    live: false,
    section: async (key) => document.getElementById(key),
    block(name) {
      if (!blocks.has(name)) blocks.set(name, readEmbedded(name));
      return blocks.get(name);
    },
    subscribe() {},
  };
}

export function openServer() {
  const blocks = new Map();
  const sections = new Map();
  const forget = (keys) => {
    for (const key of keys) {
      sections.delete(key);
      const present = document.getElementById(key);
      if (present) present.dataset.stale = "yes";
      for (const name of [...blocks.keys()]) {
        if (name === key || name.startsWith(`${key}/`)) blocks.delete(name);
      }
    }
    if (keys.includes("overview")) blocks.delete("links");
  };
  return {
    live: true,
    async section(key) {
      if (!sections.has(key)) {
        const present = document.getElementById(key);
        if (present && !present.dataset.stale) return present;
        const content = await ask(`api/section?key=${encodeURIComponent(key)}`);
        sections.set(key, placeSection(key, content, document.getElementById("dynamic")));
      }
      return sections.get(key);
    },
    block(name) {
      if (!blocks.has(name)) blocks.set(name, ask(`api/block?name=${encodeURIComponent(name)}`));
      return blocks.get(name);
    },
    // Call back with the keys of pages that have changed; what was read of them is forgotten.
    subscribe(changed) {
      const update = (keys) => {
        forget(keys);
        changed(keys);
      };
      listen(update, () => update([...document.querySelectorAll("main > .page")].map((page) => page.id)));
    },
  };
}
