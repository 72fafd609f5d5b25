"""What changed between two photos: average precision per pixel, false regions, and time over decoding.

python benchmarks/images.py [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter

import numpy as np
from PIL import Image
from scipy import ndimage
from sklearn.metrics import average_precision_score

from inlier.images import detect_changes, read_photo
from photo_pairs import DATA, PhotoPair, made_pairs, real_light_pairs, real_pairs

Score = Callable[[np.ndarray, np.ndarray], np.ndarray]


def absolute_difference(before, after):
    """Mean over the colours of |after - before|."""
    return np.abs(after.astype(np.float32) - before).mean(axis=-1)


def ssim(before, after):
    """1 - structural similarity (Wang et al. 2004): windows of 7 x 7, K = 0.01 and 0.03, mean over the colours."""
    x, y = before.astype(np.float64), after.astype(np.float64)

    def mean(values):
        return ndimage.uniform_filter(values, (7, 7, 0))

    sample = 49 / 48  # unbiased variances
    mean_x, mean_y = mean(x), mean(y)
    var_x, var_y = sample * (mean(x * x) - mean_x**2), sample * (mean(y * y) - mean_y**2)
    covariance = sample * (mean(x * y) - mean_x * mean_y)
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    similarity = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    return 1 - (similarity / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))).mean(axis=-1)


def by_method(method: str) -> Score:
    """Return the scores of `detect_changes`; the paper's methods see the photos as they are."""
    return lambda before, after: detect_changes(before, after, method, align=method == "calibrated").scores


METHODS: dict[str, Score] = {
    "abs. diff.": absolute_difference,
    "SSIM": ssim,
    "row sum": by_method("row-sum"),
    "eigenvec.": by_method("eigenvector"),
    "inlier diff": by_method("calibrated"),
}


def precision_table(title: str, pairs: Iterable[PhotoPair], every: bool) -> None:
    """Print the average precision of each method, of each pair if wanted, and the mean."""
    rows = []
    for pair in pairs:
        scores = [score(pair.before, pair.after) for score in METHODS.values()]
        rows.append([average_precision_score(pair.truth.ravel(), values.ravel()) for values in scores])
        if every:
            print(f"  {pair.name:36}" + _columns(f"{value:.3f}" for value in rows[-1]))
    if not rows:
        print(f"{title}: the photos are absent")
        return
    mean = np.mean(rows, axis=0)
    print(f"{f'{title}, mean of {len(rows)}':38}" + _columns(f"{value:.3f}" for value in mean))


def _columns(cells: Iterable[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, (12, 9, 9, 11, 13), strict=True))


def false_regions(title: str, pairs: Iterable[PhotoPair]) -> None:
    """Print in how many pairs without a change a region is reported."""
    counts = [len(detect_changes(pair.before, pair.after).regions) for pair in pairs]
    print(f"  {title:44} {sum(count > 0 for count in counts)} of {len(counts)} pairs, {sum(counts)} regions")


def time_over_decoding() -> None:
    """A pair of 12 megapixels: from files to scores, mask and regions, over the time to decode the two files."""
    photo = next(iter(sorted((DATA / "sky").glob("lomiri*.jpg"))), None)
    image = Image.open(photo) if photo else Image.effect_mandelbrot((4272, 2848), (-2, -1.5, 1, 1.5), 100)
    before = image.convert("RGB").resize((4272, 2848))
    after = before.point(lambda value: int(value * 0.9))
    after.paste((170, 60, 40), (900, 1800, 1500, 2200))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("before.jpg", "after.jpg")]
        for path, picture in zip(paths, (before, after), strict=True):
            picture.save(path, quality=92)
        decoding = min(_seconds(lambda: [read_photo(path) for path in paths]) for _ in range(3))
        print(f"12 megapixels ({before.width} x {before.height}): time / time of decoding the two files (under 20)")
        for method in ("calibrated", "row-sum", "eigenvector"):
            whole = _seconds(lambda method=method: detect_changes(*(read_photo(path) for path in paths), method))
            print(f"  {method:14} {whole / decoding:5.1f}")
        command = _seconds(lambda: _command(paths, folder))
        print(f"  {'whole command':14} {command / decoding:5.1f}   with overlay, mask, list and page written")


def _command(paths: list[Path], folder: str) -> None:
    from click.testing import CliRunner

    from inlier.cli import main

    outcome = CliRunner().invoke(main, ["diff", *map(str, paths), "-o", str(Path(folder) / "out"), "--quiet"])
    assert outcome.exit_code == 0, outcome.output


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer made pairs")
    count = 6 if parser.parse_args().quick else 24
    warnings.simplefilter("ignore")
    print(f"{'average precision per pixel':38}" + _columns(METHODS))
    precision_table("real pairs", real_pairs(), every=True)
    precision_table("pasted, real other light", real_light_pairs(count // 2), every=False)
    precision_table("made pairs", made_pairs(count), every=False)
    print("pairs without any change: reported all the same, alpha = 0.01")
    false_regions("noise, blur, JPEG, small shifts", made_pairs(count, seed=2, changed=False, relit=False))
    false_regions("the same with other light and soft shadows", made_pairs(count, seed=3, changed=False))
    time_over_decoding()


if __name__ == "__main__":
    main()
