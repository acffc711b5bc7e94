// Show text of models and programs as it is: what cannot be seen or would reorder it is escaped.
import { html } from "./vendor/preact-htm.js";

// Control, format (bidi, zero width), surrogate and private characters, and other invisible ones.
// Line ends and tabs are left out.
const SPECIAL =
  /[^\P{C}\n\t\p{Cn}]|[\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0]/gu;

export function escapeCharacter(character) {
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

// Return the text with a marked escape for every special character.
export function visible(text) {
  if (text.search(SPECIAL) < 0) return text; // unlike test(), it leaves no position behind
  const parts = [];
  let last = 0;
  for (const match of text.matchAll(SPECIAL)) {
    if (match.index > last) parts.push(text.slice(last, match.index));
    const shown = escapeCharacter(match[0]);
    parts.push(html`<span class="ctl" title=${`character ${shown}`}>${shown}</span>`);
    last = match.index + match[0].length;
  }
  if (last < text.length) parts.push(text.slice(last));
  return parts;
}

export function visibleText(text) {
  return text.replace(SPECIAL, escapeCharacter);
}
