"""Find samples that were swapped in the lab, and who belongs to whom.

The same samples were measured by two assays, say gene expression and proteins. The two tables have other columns, but
both follow the same few biological programmes. Somewhere tubes were swapped: the row of a sample in the second table
belongs to somebody else. The matcher names the suspicious samples; a linear map learned from the others then says
whose measurement each of them really is.

    python examples/swapped_samples.py [--out FOLDER]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cross_decomposition import PLSRegression

from _picture import folder_for_pictures, write_picture
from inlier import CalibratedMatcher
from inlier.plotting import QUIET, REAL, WRONG, new_figure

SAMPLES, GENES, PROTEINS, PROGRAMMES = 300, 60, 35, 8


@dataclass(frozen=True, eq=False)
class Study:
    """Two tables of the same samples; ``owner[i]`` is whose proteins are in row i."""

    names: list[str]
    genes: np.ndarray
    proteins: np.ndarray
    owner: np.ndarray


def make_study(rng: np.random.Generator) -> Study:
    """Draw a study in which three pairs and one triple of tubes were mixed up."""
    programmes = rng.standard_normal((SAMPLES, PROGRAMMES))
    genes = programmes @ rng.standard_normal((PROGRAMMES, GENES)) + 2.0 * rng.standard_normal((SAMPLES, GENES))
    proteins = programmes @ rng.standard_normal((PROGRAMMES, PROTEINS)) + 2.0 * rng.standard_normal((SAMPLES, PROTEINS))
    owner = np.arange(SAMPLES)
    tubes = rng.permutation(SAMPLES)[:9]
    for group in np.split(tubes, [2, 4, 6]):
        owner[group] = np.roll(group, 1)
    names = [f"S{number:03d}" for number in range(1, SAMPLES + 1)]
    return Study(names, genes, proteins[owner], owner)


def suspects(study: Study) -> tuple[CalibratedMatcher, np.ndarray]:
    """Samples whose two rows do not go together: more likely wrong than real."""
    matcher = CalibratedMatcher(alpha=0.01, random_state=0).fit(study.genes, study.proteins)
    return matcher, np.flatnonzero(matcher.q_values_ > 0.5)


def right_partners(study: Study, suspicious: np.ndarray) -> np.ndarray:
    """Deal the suspicious protein rows out among the suspicious samples, as a map learned from the others predicts."""
    trusted = np.setdiff1d(np.arange(SAMPLES), suspicious)
    model = PLSRegression(PROGRAMMES).fit(study.genes[trusted], study.proteins[trusted])
    spread = (study.proteins[trusted] - model.predict(study.genes[trusted])).std(axis=0)
    predicted, measured = model.predict(study.genes[suspicious]), study.proteins[suspicious]
    _, rows = linear_sum_assignment(cdist(predicted / spread, measured / spread, "sqeuclidean"))
    return suspicious[rows]  # partner[k]: the row in which the proteins of suspicious[k] are


def picture(study: Study, matcher: CalibratedMatcher, suspicious: np.ndarray):
    """Score of every sample; the suspicious ones by name."""
    figure = new_figure(figsize=(9, 3.6))
    ax = figure.subplots()
    truly = study.owner != np.arange(SAMPLES)
    ax.scatter(np.flatnonzero(~truly), matcher.scores_[~truly], s=12, color=REAL, label="in its place")
    ax.scatter(np.flatnonzero(truly), matcher.scores_[truly], s=28, color=WRONG, label="swapped in truth")
    for k in suspicious:
        ax.annotate(study.names[k], (k, matcher.scores_[k]), xytext=(5, -3), textcoords="offset points", fontsize=8)
    ax.axhline(0, color=QUIET, linewidth=1)
    ax.set(xlabel="sample", ylabel="score: do the rows go together?")
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=2)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def main(folder: Path | None = None) -> None:
    """Make a study, find the swapped samples, propose their partners."""
    study = make_study(np.random.default_rng(0))
    matcher, suspicious = suspects(study)
    print(
        f"{SAMPLES} samples in two tables of {GENES} and {PROTEINS} columns; {len(suspicious)} seem not to go together:"
    )
    partners = right_partners(study, suspicious)
    for sample, row in zip(suspicious, partners, strict=True):
        where = "in its own row after all" if row == sample else f"in the row of {study.names[row]}"
        verdict = "right" if study.owner[row] == sample else "wrong"
        print(f"  {study.names[sample]} (q = {matcher.q_values_[sample]:.2f}): its proteins are {where}  [{verdict}]")
    swapped = np.flatnonzero(study.owner != np.arange(SAMPLES))
    print(
        f"In truth {len(swapped)} samples were swapped; {len(np.setdiff1d(swapped, suspicious))} of them were missed."
    )
    if folder:
        write_picture(picture(study, matcher, suspicious), folder, "swapped_samples.png")


if __name__ == "__main__":
    main(folder_for_pictures(__doc__.splitlines()[0]))
