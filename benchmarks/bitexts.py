"""Two columns of text alone, without any encoder: which lines of a bitext are displaced?

    pip download --no-deps django==5.2.19
    python benchmarks/bitexts.py de fr es it nl pl ru cs sv tr el ja --wheel django-5.2.19-py3-none-any.whl

The lines are the messages that Django translates, at most 1,000 of a language, of which a fifth is displaced in a ring.
"""

from __future__ import annotations

import argparse
import ast
import re
import zipfile
from time import perf_counter

import numpy as np

from inlier import CalibratedMatcher

ALPHA, MOST, WRONG = 0.05, 1000, 5
_MESSAGE = r'^{} ((?:".*"\n?)+)'
_PLACE = re.compile(r"locale/([a-z]{2})/LC_MESSAGES/django(js)?\.po$")


def entries(catalogue):
    """What a catalogue of messages has in English, and what it has for that."""
    for block in catalogue.split("\n\n"):
        found = [re.search(_MESSAGE.format(word), block, re.MULTILINE) for word in ("msgid", "msgstr")]
        if "msgid_plural" in block or "fuzzy" in block or None in found:
            continue
        english, other = (
            " ".join("".join(map(ast.literal_eval, lines[1].strip().split("\n"))).split()) for lines in found
        )
        if english and other:
            yield english, other


def bitext(wheel, language):
    """Lines in English and in another language."""
    lines = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            place = _PLACE.search(name)
            if place and place[1] == language:
                for english, other in entries(archive.read(name).decode()):
                    lines.setdefault(english, other)
    return list(lines), list(lines.values())


def main():
    """Print a line a language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="+")
    parser.add_argument("--wheel", required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for language in given.languages:
        rng = np.random.default_rng(given.seed)
        english, other = bitext(given.wheel, language)
        chosen = rng.permutation(len(english))[:MOST]
        row = np.arange(chosen.size)
        displaced = rng.choice(row, chosen.size // WRONG, replace=False)
        row[displaced] = np.roll(displaced, 1)
        start = perf_counter()
        matcher = CalibratedMatcher(alpha=ALPHA, random_state=0)
        matcher.fit([english[k] for k in chosen], [other[k] for k in chosen[row]])
        accepted, wrong = matcher.inlier_mask_, row != np.arange(chosen.size)
        share, seconds = (accepted & wrong).sum() / accepted.sum(), perf_counter() - start
        print(f"{language}: {chosen.size} lines, {accepted.sum()} accepted, {share:.3f} of them wrong, {seconds:.1f} s")


if __name__ == "__main__":
    main()
