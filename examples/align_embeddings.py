"""Align two embedding spaces with a dirty dictionary.

Two models embed the same words; their spaces differ by a rotation and by what each model knows alone. A bilingual
dictionary pairs the words, but many of its entries are wrong. The usual way, a Procrustes fit on all entries, learns
from the wrong ones too. Here the wrong entries are found first, and the rotation is fitted to the others.

    python examples/align_embeddings.py [--out FOLDER]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import ortho_group

from _picture import folder_for_pictures, write_picture
from inlier import CalibratedMatcher, Transformation, estimate_transformation
from inlier.plotting import QUIET, REAL, WRONG, new_figure

DIMENSION, WORDS, ENTRIES = 50, 5000, 2000


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Embeddings of the same words in two spaces (row i of both is word i) and entries between them."""

    english: np.ndarray
    foreign: np.ndarray
    entries: np.ndarray  # rows of english and foreign

    @property
    def right(self) -> np.ndarray:
        """Entries that join a word with its translation."""
        return self.entries[:, 0] == self.entries[:, 1]

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Embeddings of both sides of every entry."""
        return self.english[self.entries[:, 0]], self.foreign[self.entries[:, 1]]


def make_dictionary(rng: np.random.Generator, wrong_share: float = 0.85) -> Dictionary:
    """Words in topics, seen by two models, and a dictionary with wrong entries."""
    spectrum = np.linspace(1, 0.3, DIMENSION)  # some directions carry more than others
    topics = 0.8 * rng.standard_normal((40, DIMENSION))
    meaning = (topics[rng.integers(40, size=WORDS)] + rng.standard_normal((WORDS, DIMENSION))) * spectrum
    own = [0.7 * spectrum * rng.standard_normal(meaning.shape) for _ in range(2)]  # what each model adds
    rotation = ortho_group.rvs(DIMENSION, random_state=rng)
    left = rng.permutation(WORDS)[:ENTRIES]
    right = left.copy()
    wrong = rng.permutation(ENTRIES)[: round(wrong_share * ENTRIES)]
    right[wrong] = np.roll(left[wrong], 1)
    return Dictionary(meaning + own[0], (meaning + own[1]) @ rotation.T, np.column_stack([left, right]))


def translation_accuracy(transformation: Transformation, dictionary: Dictionary) -> float:
    """Share of the words outside the dictionary whose nearest neighbour in the other space is their translation."""
    unseen = np.setdiff1d(np.arange(WORDS), dictionary.entries[:, 0])
    moved, foreign = transformation(dictionary.english[unseen]), dictionary.foreign
    squared = (foreign**2).sum(axis=1) - 2 * moved @ foreign.T
    return float(np.mean(squared.argmin(axis=1) == unseen))


def align(dictionary: Dictionary) -> tuple[CalibratedMatcher, Transformation]:
    """Find the right entries, then the rotation between the spaces from those."""
    X, Y = dictionary.sides
    matcher = CalibratedMatcher(alpha=0.01, random_state=0).fit(X, Y)
    accepted = matcher.inlier_mask_
    return matcher, estimate_transformation("orthogonal", X[accepted], Y[accepted])


def picture(dictionary: Dictionary, accuracies: dict[str, float], matcher: CalibratedMatcher):
    """Scores of the entries, and translation accuracy."""
    figure = new_figure(figsize=(9, 3.4))
    scores, bars = figure.subplots(1, 2, width_ratios=[3, 2])
    edges = np.histogram_bin_edges(matcher.scores_, 60)
    groups = [matcher.scores_[dictionary.right], matcher.scores_[~dictionary.right]]
    scores.hist(groups, edges, stacked=True, color=[REAL, WRONG], label=["right entries", "wrong entries"])
    scores.axvline(matcher.threshold_, color="black", linestyle="--", linewidth=1, label="accepted from here")
    scores.set(xlabel="score of a dictionary entry", ylabel="number of entries")
    scores.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=3, fontsize=9)
    names = list(accuracies)
    bars.barh(names, [accuracies[name] for name in names], color=[QUIET, REAL, QUIET])
    bars.invert_yaxis()
    bars.set(xlim=(0, 1), xlabel="unseen words translated rightly")
    for ax in (scores, bars):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def main(folder: Path | None = None) -> None:
    """Make two spaces and a dictionary, align, say what came out."""
    dictionary = make_dictionary(np.random.default_rng(0))
    X, Y = dictionary.sides
    right = dictionary.right
    print(f"{len(X):,} dictionary entries, {1 - right.mean():.0%} of them wrong; {DIMENSION} dimensions.")
    matcher, aligned = align(dictionary)
    accepted = matcher.inlier_mask_
    print(f"{accepted.sum():,} entries accepted; {(accepted & ~right).sum()} of those are wrong,")
    print(f"and {(right & ~accepted).sum()} right ones were missed.")
    accuracies = {
        "all entries": translation_accuracy(estimate_transformation("orthogonal", X, Y), dictionary),
        "accepted entries": translation_accuracy(aligned, dictionary),
        "right entries": translation_accuracy(estimate_transformation("orthogonal", X[right], Y[right]), dictionary),
    }
    print("Words outside the dictionary whose nearest neighbour is their translation, with a rotation fitted to")
    for name, accuracy in accuracies.items():
        print(f"  {name + ':':18s}{accuracy:.1%}")
    if folder:
        write_picture(picture(dictionary, accuracies, matcher), folder, "align_embeddings.png")


if __name__ == "__main__":
    main(folder_for_pictures(__doc__.splitlines()[0]))
