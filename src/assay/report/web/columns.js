// Read a run's index: samples in columns, as the file stores them.
import { wellFormed } from "./router.js";

export class RunIndex {
  constructor(content) {
    Object.assign(this, content);
    // By task. A task can have any name, such as that of a property that all objects have.
    this.clusters = new Map(Object.entries(content.clusters));
    this.timeLimits = new Map(Object.entries(content.time_limits));
    this.first = [];
    let at = 0;
    for (const count of this.counts) {
      this.first.push(at);
      at += count;
    }
    this.size = at;
    this.taskOf = new Int32Array(at);
    this.counts.forEach((count, task) => {
      this.taskOf.fill(task, this.first[task], this.first[task] + count);
    });
    this.taskNumbers = new Map(this.tasks.map((task, number) => [wellFormed(task), number]));
  }

  word(name, row) {
    const column = this.words[name];
    return column.of[column.at[row]];
  }

  // Return a column's value, or 0 if it is not known: addresses and files can hold anything.
  number(name, row) {
    return Object.hasOwn(this.numbers, name) ? this.numbers[name][row] ?? 0 : 0;
  }

  get mostSamples() {
    return this.counts.reduce((most, count) => Math.max(most, count), 0);
  }

  rowsOf(task) {
    const found = [];
    for (let row = this.first[task]; row < this.first[task] + this.counts[task]; row += 1) {
      found.push(row);
    }
    return found;
  }

  findRow(task, sample) {
    const number = this.taskNumbers.get(wellFormed(task));
    if (number === undefined) return -1;
    const rows = this.rowsOf(number);
    const wanted = rows.find((row) => this.number("sample", row) === Number(sample));
    return wanted === undefined ? (rows.length ? rows[0] : -1) : wanted;
  }

  // Return how often every word of a column occurs, the most frequent first.
  tally(name) {
    const column = this.words[name];
    const counts = Array.from(column.of, () => 0);
    for (const at of column.at) counts[at] += 1;
    return column.of
      .map((word, number) => [word, counts[number]])
      .filter(([word, count]) => word !== "" && count)
      .toSorted((one, other) => other[1] - one[1]);
  }
}

const indexes = new WeakMap();

export async function readIndex(source, run) {
  const content = await source.block(run);
  if (!indexes.has(content)) indexes.set(content, new RunIndex(content));
  return indexes.get(content);
}
