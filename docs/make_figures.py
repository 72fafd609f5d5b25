"""Draw the pictures of docs/how-sure-are-you.md and print the numbers it quotes.

python docs/make_figures.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import ortho_group

from inlier import CalibratedMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.plotting import QUIET, REAL, WRONG, as_png, new_figure

IMAGES = Path(__file__).parent / "images"
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2)


def false_share(accepted, real):
    """Share of wrong pairs among the accepted."""
    return (accepted & ~real).sum() / max(accepted.sum(), 1)


def save(figure, name):
    """Write a picture."""
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / name).write_bytes(as_png(figure, dpi=110))


def rate_curve(ax, make, draws, label, colour):
    """Mean share of wrong pairs among the accepted against alpha, over seeded draws of a problem."""
    shares = []
    for seed in range(draws):
        X, Y, real = make(seed)
        q = CalibratedMatcher(random_state=seed).fit(X, Y).q_values_
        shares.append([false_share(q <= alpha, real) for alpha in LEVELS])
    mean = np.mean(shares, axis=0)
    ax.plot(LEVELS, mean, "o-", color=colour, label=label)
    return mean


def finish_rate_axes(ax):
    """Draw the promised rate, name the axes."""
    ax.plot(LEVELS, LEVELS, "--", color="black", linewidth=1, label="promised: alpha")
    ax.set(xscale="log", yscale="log", xlabel="alpha", ylabel="wrong among the accepted")
    ax.legend(frameon=False)


def independent(seed):
    """Wrong pairs as the guarantee assumes them, in a case where real and wrong pairs overlap."""
    data = make_gaussian_pairs(1000, 3, 0.5, noise=0.3, rng=seed)
    return data.X, data.Y, data.inlier_mask


def guarantee():
    """Uniform p-values of wrong pairs, and the rate that follows."""
    figure = new_figure(figsize=(9, 3.4))
    left, right = figure.subplots(1, 2)
    p = []
    for seed in range(20):
        X, Y, real = independent(seed)
        p.append(CalibratedMatcher(random_state=seed).fit(X, Y).p_values_[~real])
    left.hist(np.concatenate(p), bins=20, density=True, color=QUIET)
    left.axhline(1, color="black", linestyle="--", linewidth=1)
    left.set(xlabel="p-value of wrong pairs", ylabel="density", title="Wrong pairs: every p-value as likely")
    mean = rate_curve(right, independent, 40, "observed", REAL)
    finish_rate_axes(right)
    right.set_title("So the rate is held")
    save(figure, "sure-guarantee.png")
    print("independent wrong pairs:", ", ".join(f"{m:.3f} at {a:g}" for a, m in zip(LEVELS, mean, strict=True)))


def clustered(seed, spread, n=1000, clusters=40):
    """Points in tight clusters: a wrong partner from the right cluster is nearly right."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, 5))
    points = centres[rng.integers(0, clusters, n)] + spread * rng.standard_normal((n, 5))
    real = rng.uniform(size=n) < 0.5
    partner = np.arange(n)
    wrong = np.flatnonzero(~real)
    partner[wrong] = np.roll(wrong, 1)
    noise = 0.05 * rng.standard_normal((n, 5))
    return points, points[partner] @ ortho_group.rvs(5, random_state=rng) + noise, real


def near_duplicates():
    """What is found as clusters get tighter than the noise."""
    spreads = (1.0, 0.3, 0.1, 0.05, 0.02, 0.01)
    recall, false = [], []
    for spread in spreads:
        runs = []
        for seed in range(10):
            X, Y, real = clustered(seed, spread)
            accepted = CalibratedMatcher(alpha=0.01, random_state=seed).fit(X, Y).inlier_mask_
            runs.append([accepted[real].mean(), false_share(accepted, real)])
        recall.append(np.mean(runs, axis=0)[0])
        false.append(np.mean(runs, axis=0)[1])
    figure = new_figure(figsize=(5, 3.4))
    ax = figure.subplots()
    ax.plot(spreads, recall, "o-", color=REAL, label="real pairs found")
    ax.plot(spreads, false, "o-", color=WRONG, label="wrong among the accepted")
    ax.axhline(0.01, color="black", linestyle="--", linewidth=1, label="alpha = 0.01")
    ax.set(xscale="log", xlabel="width of the clusters (noise: 0.05)", ylabel="share", title="Near-duplicates")
    ax.legend(frameon=False)
    save(figure, "sure-near-duplicates.png")
    print(
        "near-duplicates:",
        ", ".join(f"width {s:g}: {r:.2f} found, {f:.3f} wrong" for s, r, f in zip(spreads, recall, false, strict=True)),
    )


def shifted_block(seed, n=1000):
    """A tenth of the pairs is wrong in one and the same way: a block of neighbours moved together."""
    data = make_gaussian_pairs(n, 3, 0.5, noise=0.3, rng=seed)
    real = data.inlier_mask.copy()
    block = np.argsort(data.X[:, 0])[-n // 10 :]
    Y = data.Y.copy()
    Y[block] = (data.X[block] + [0.0, 0.6, 0.0]) @ data.rotation.T
    real[block] = False
    return data.X, Y, real


def structured_mistakes():
    """The promise, broken by wrong pairs that agree with each other."""
    figure = new_figure(figsize=(5, 3.4))
    ax = figure.subplots()
    mean = rate_curve(ax, shifted_block, 20, "a block shifted together", WRONG)
    finish_rate_axes(ax)
    ax.set_title("Mistakes that agree: the rate is not held")
    save(figure, "sure-structured.png")
    print("shifted block:", ", ".join(f"{m:.3f} at {a:g}" for a, m in zip(LEVELS, mean, strict=True)))


if __name__ == "__main__":
    guarantee()
    near_duplicates()
    structured_mistakes()
