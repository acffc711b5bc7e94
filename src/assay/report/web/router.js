// Addresses of pages: the fragment `run/NAME/TASK/3?status=fail`. Parts are encoded as in addresses.

const PAGE_PARTS = { overview: 1, board: 1, run: 2, compare: 3, model: 2 };

export function parseRoute(fragment) {
  const [path, query] = fragment.replace(/^#/, "").split("?");
  const raw = (path || "overview").split("/");
  const kind = raw[0];
  const size = PAGE_PARTS[kind] || 1;
  return {
    kind,
    key: raw.slice(0, size).join("/"),
    names: raw.slice(1, size).map(decode),
    rest: raw.slice(size).map(decode),
    query: Object.fromEntries(new URLSearchParams(query || "")),
  };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// Return the text with a replacement for halves of characters, which addresses cannot have.
export function wellFormed(text) {
  return text.replace(/[\ud800-\udfff]/gu, "\ufffd");
}

// As Python's quote(safe="") does, which also encodes the characters that are left out here.
function encode(part) {
  return encodeURIComponent(wellFormed(part)).replace(
    /[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

export function joinKey(...parts) {
  return parts.map((part) => encode(String(part))).join("/");
}

export function address(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#${joinKey(...parts)}${search}`;
}

// Change the query of this page without a new step in the browser's history.
export function replaceQuery(query) {
  const path = location.hash.replace(/^#/, "").split("?")[0] || "overview";
  const given = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  history.replaceState(null, "", `#${path}${search}`);
}
