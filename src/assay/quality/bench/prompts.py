"""Make prompts of a given length. No two start alike, because engines cache prefixes."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Iterator

from assay.types import Message, Prompt, PromptForm

WORDS_PER_TOKEN = 0.75  # used if the engine does not count tokens
TRIES = 8
ASKING = "Tell how this goes on, at length, and do not come to an end:\n\n"
# Sentences that can follow each other in any order, so that a model continues a text of them.
SENTENCES = (
    "The ferry left the pier before the fog had lifted, and nobody waved.",
    "Marta counted the crates twice and wrote the smaller number into the book.",
    "Behind the mill the water ran slower, brown with leaves and last week's rain.",
    "He said that the key had always hung there, on the third nail from the door.",
    "By noon the whole street smelled of tar and warm bread.",
    "Two boys carried the ladder, one of them backwards and without looking.",
    "The letter had been opened, read and closed again with a different glue.",
    "Nothing in the garden had been cut since the spring of the flood.",
    "She kept the lamp low and the window open, because the sea told her the time.",
    "An old map hung in the hall, and on it the island was twice its size.",
    "The baker's dog knew the way home and took it whenever it wanted to.",
    "They paid in coins, slowly, as if each had a name.",
    "Over the hills the sky turned green, which the fishermen did not like.",
    "In the cellar stood a machine with eleven wheels, and one of them still turned.",
    "The clerk looked for the form, then for his glasses, then for a reason to go.",
    "A train went by without stopping, all of its windows dark but one.",
    "My uncle swore that he had built the bridge with borrowed tools.",
    "The snow came early that year and covered the tracks of everybody alike.",
    "From the tower one could see three villages and the smoke of a fourth.",
    "It was the quietest market day that anyone could remember.",
    "The piano was out of tune in a way that made the waltz sound like a march.",
    "Someone had drawn a line of chalk from the well to the church.",
    "The doctor walked up and down, read the paper, and walked again.",
    "When the rope broke, the bell rang once more, by itself.",
)


def texts(seed: int) -> Iterator[Iterator[str]]:
    """Yield endless texts, each an endless iterator of words that starts with its own number."""
    draw = random.Random(seed)
    for number in itertools.count(draw.randrange(1_000_000)):
        yield _words(number, random.Random(draw.getrandbits(64)))


def prompt_of(
    text: Iterator[str],
    wanted: int,
    form: PromptForm,
    count: Callable[[Prompt], int | None],
) -> Prompt:
    """Return a prompt of this many tokens, or slightly fewer because words are kept whole.

    ``count`` returns a prompt's tokens. If it does not know, the number of words is a guess.
    """
    words: list[str] = []
    fits, too_many = 0, sys.maxsize  # words
    guess = max(1, round(wanted * WORDS_PER_TOKEN))
    for _ in range(TRIES):
        words += itertools.islice(text, max(0, guess - len(words)))
        counted = count(_prompt(words[:guess], form))
        if counted is None or counted == wanted:
            return _prompt(words[:guess], form)
        if counted < wanted:
            fits = guess
        else:
            too_many = guess
        if too_many - fits <= 1:
            break
        guess = min(max(round(guess * wanted / max(counted, 1)), fits + 1), too_many - 1)
    return _prompt(words[: max(fits, 1)], form)


def _words(number: int, draw: random.Random) -> Iterator[str]:
    yield f"{number}."
    while True:
        for sentence in draw.sample(SENTENCES, len(SENTENCES)):
            yield from sentence.split(" ")


def _prompt(words: list[str], form: PromptForm) -> Prompt:
    text = " ".join(words)
    if form == "chat":
        return Prompt(messages=(Message("user", ASKING + text),))
    return Prompt(text=text)
