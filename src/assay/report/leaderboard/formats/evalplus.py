"""Register ``evalplus``: the results.json of EvalPlus's leaderboard.

Its form is that of evalplus/evalplus.github.io. An entry is named by the model and has a link, how
open the training data are, pass@1 in per cent, whether the model was prompted as a chat model, and
its size in billions of weights. ``marks`` is ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from assay.data.printable import clean_line
from assay.report.leaderboard.board import Leaderboard, only_block, renderers
from assay.runs import Result

BASE = "base"
# A score of theirs, and where it comes from: our benchmark and its group of tests, or all of them.
# Their MBPP is the base tests of MBPP+, not the whole MBPP.
SOURCES: dict[str, tuple[tuple[str, str], ...]] = {
    "humaneval": (("humanevalplus", BASE), ("humaneval", "")),
    "humaneval+": (("humanevalplus", ""),),
    "mbpp": (("mbppplus", BASE),),
    "mbpp+": (("mbppplus", ""),),
}


@renderers.register("evalplus")
def render_evalplus(board: Leaderboard) -> str:
    """Return an object with an entry for each model. Only complete results have a score."""
    models = {}
    for row in only_block(board, "evalplus").rows:
        results = {
            cell.result.benchmark: cell.result
            for cell in row.cells
            if cell and cell.result and cell.state == "complete"
            if not cell.result.config.problem_selection
        }
        shown = (cell.result for cell in row.cells if cell and cell.result)
        identities = [result.model_identity for result in shown]
        parameters = row.facts.parameters
        models[clean_line(row.model)] = {
            "link": "",
            "open-data": "NONE",
            "pass@1": {name: _score(results, places) for name, places in SOURCES.items()},
            "prompted": any(one.prompt_form == "chat" for one in identities if one),
            "size": None if parameters is None else round(parameters / 1e9, 1),
            "marks": list(dict.fromkeys(name for one in results.values() for name in one.marks)),
        }
    return json.dumps(models, indent=2) + "\n"


def _score(results: Mapping[str, Result], places: tuple[tuple[str, str], ...]) -> float | None:
    for benchmark, group in places:
        if benchmark not in results:
            continue
        score = results[benchmark].results
        scores = score.groups.get(group) if group else score
        if scores and (estimate := scores.pass_at.get(1)):
            return round(100 * estimate.value, 1)
    return None
