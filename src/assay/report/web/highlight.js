// Split code into lines of coloured pieces. Long texts stay plain, so that any text opens fast.
import { Prism } from "./vendor/prism.js";

const MOST_CHARACTERS = 60000;
const LONGEST_LINE = 2000;

export function splitLines(text) {
  const lines = text.replace(/\r\n/g, "\n").split("\n");
  if (lines.length > 1 && lines[lines.length - 1] === "") lines.pop();
  return lines;
}

// Return lines, each a list of [kind, text].
export function highlightLines(text) {
  const lines = splitLines(text);
  if (text.length > MOST_CHARACTERS || lines.some((line) => line.length > LONGEST_LINE)) {
    return lines.map((line) => [["", line]]);
  }
  const found = [[]];
  const add = (kind, content) => {
    if (typeof content === "string") {
      const pieces = content.split("\n");
      pieces.forEach((piece, number) => {
        if (number) found.push([]);
        if (piece) found[found.length - 1].push([kind, piece]);
      });
    } else if (Array.isArray(content)) {
      content.forEach((item) => add(kind, item));
    } else {
      add(content.type, content.content);
    }
  };
  add("", Prism.tokenize(lines.join("\n"), Prism.languages.python));
  return found;
}
