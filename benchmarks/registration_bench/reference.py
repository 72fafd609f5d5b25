"""Short reference fits, written for this comparison from the papers' descriptions; not their authors' programs.

Each takes X, Y (n x d, any d) and what it needs, and returns rotation R and translation t of y = R x + t, and a mask
or None. Least squares, IRLS-L1, GNC-TLS (Yang et al. 2020), SC2-PCR (Chen et al. 2022), CLIPPER (Lusk et al. 2021).
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

SC2_SAMPLE = 8000  # pairs that SC2-PCR looks at; the others only vote, as in its authors' program


def procrustes(X, Y, weights=None):
    """Least squares over rotations and translations, with weights (n,) where given."""
    if weights is None:
        x_mean, y_mean = X.mean(axis=0), Y.mean(axis=0)
        covariance = (Y - y_mean).T @ (X - x_mean)
    else:
        shares = weights / weights.sum()
        x_mean, y_mean = shares @ X, shares @ Y
        covariance = (Y - y_mean).T @ (shares[:, None] * (X - x_mean))
    U, _, Vt = np.linalg.svd(covariance)
    U[:, -1] *= np.sign(np.linalg.det(U @ Vt))  # a rotation, never a reflection
    return U @ Vt, y_mean - U @ Vt @ x_mean


def batched_procrustes(X, Y, weights):
    """Solve many small weighted problems at once: X, Y (b, k, d), weights (b, k)."""
    shares = (weights / weights.sum(axis=1, keepdims=True))[..., None]
    x_mean, y_mean = (shares * X).sum(axis=1), (shares * Y).sum(axis=1)
    covariance = np.swapaxes(shares * (Y - y_mean[:, None]), 1, 2) @ (X - x_mean[:, None])
    U, _, Vt = np.linalg.svd(covariance)
    U[:, :, -1] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    rotations = U @ Vt
    return rotations, y_mean - np.einsum("bij,bj->bi", rotations, x_mean)


def residual_norms(X, Y, rotation, translation):
    """|y - R x - t| for each pair."""
    return np.linalg.norm(Y - X @ rotation.T - translation, axis=1)


def irls_l1(X, Y, iterations=200):
    """Least sum of absolute residuals: least squares again and again with weights 1 / residual."""
    rotation, translation = procrustes(X, Y)
    for _ in range(iterations):
        norms = residual_norms(X, Y, rotation, translation)
        before = rotation, translation
        rotation, translation = procrustes(X, Y, 1 / np.maximum(norms, 1e-6 * norms.max() + 1e-300))
        if np.abs(rotation - before[0]).max() < 1e-7 and np.abs(translation - before[1]).max() < 1e-7:
            break
    return rotation, translation, None


def gnc_tls(X, Y, bound, iterations=200):
    """Truncated least squares by graduated non-convexity: mu grows by 1.4 until every weight is 0 or 1."""
    rotation, translation = procrustes(X, Y)
    squared = residual_norms(X, Y, rotation, translation) ** 2
    mu = bound**2 / max(2 * squared.max() - bound**2, 1e-12)
    weights = np.ones(len(X))
    for _ in range(iterations):
        low, high = mu / (mu + 1) * bound**2, (mu + 1) / mu * bound**2
        middle = bound * np.sqrt(mu * (mu + 1) / np.maximum(squared, 1e-300)) - mu
        weights = np.where(squared <= low, 1.0, np.where(squared >= high, 0.0, middle))
        if np.count_nonzero(weights > 1e-9) < 3:
            return None
        rotation, translation = procrustes(X, Y, weights)
        squared = residual_norms(X, Y, rotation, translation) ** 2
        if np.all((weights < 1e-6) | (weights > 1 - 1e-6)):
            break
        mu *= 1.4
    return rotation, translation, weights > 0.5


def length_differences(X, Y):
    """How much each two pairs disagree about their distance, n x n in single precision."""
    difference = cdist(X, X).astype(np.float32)
    difference -= cdist(Y, Y)
    return np.abs(difference, out=difference)


def leading_vector(matrix, iterations=20):
    """Power iteration on a matrix (or a stack of them) without negative entries."""
    vector = np.ones((*matrix.shape[:-1], 1), dtype=matrix.dtype)
    for _ in range(iterations):
        vector = matrix @ vector
        vector /= np.linalg.norm(vector, axis=-2, keepdims=True) + 1e-12
    return vector[..., 0]


def sc2_pcr(X, Y, bound, rng, seeds_share=0.2, first=30, second=20):
    """Second-order spatial compatibility: agreeing pairs by how many third pairs agree with both."""
    chosen = np.sort(rng.permutation(len(X))[:SC2_SAMPLE])
    x, y = X[chosen], Y[chosen]
    difference = length_differences(x, y)
    first_order = np.maximum(1 - (difference / bound) ** 2, 0)
    confidence = leading_vector(first_order)
    del first_order
    hard = (difference < bound).astype(np.float32)
    seeds = np.argsort(-confidence)[: max(round(seeds_share * len(x)), min(len(x), 20))]
    second_order = hard[seeds] * (hard[seeds] @ hard)
    nearest = np.argsort(-second_order, axis=1)[:, : min(first, len(x))]
    local = hard[nearest[:, :, None], nearest[:, None, :]]  # a small matrix for each seed
    local = local * (local @ local)
    closest = np.argsort(-local[:, 0], axis=1)[:, : min(second, nearest.shape[1])]
    rows = np.take_along_axis(nearest, closest, axis=1)
    local = np.take_along_axis(np.take_along_axis(local, closest[:, :, None], 1), closest[:, None, :], 2)
    rotations, translations = batched_procrustes(x[rows], y[rows], leading_vector(local).astype(float) + 1e-9)
    votes = [(residual_norms(x, y, R, t) < bound).sum() for R, t in zip(rotations, translations, strict=True)]
    best = int(np.argmax(votes))
    return refine(X, Y, rotations[best], translations[best], bound)


def refine(X, Y, rotation, translation, bound, iterations=20):
    """Fit the pairs within the bound, weighted down towards it, until their number stays."""
    count = 0
    for _ in range(iterations):
        norms = residual_norms(X, Y, rotation, translation)
        mask = norms < bound
        if mask.sum() in (count, 0, 1, 2):
            break
        count = mask.sum()
        rotation, translation = procrustes(X[mask], Y[mask], 1 / (1 + (norms[mask] / bound) ** 2))
    return rotation, translation, residual_norms(X, Y, rotation, translation) < bound


def clipper(X, Y, bound, rounds=30, steps=200):
    """A dense cluster of pairs that all agree: projected gradient ascent with a growing penalty on disagreement."""
    agreement = length_differences(X, Y)
    compatible = (agreement < bound).astype(np.float32)
    np.exp(-0.5 * (agreement / (bound / 3)) ** 2, out=agreement)  # sigma such that the bound is three of it
    agreement *= compatible
    u = leading_vector(agreement)
    penalty = 0.0
    for _ in range(rounds):
        conflicts = u.sum() - compatible @ u
        active = (conflicts > 1e-2 * u.sum()) & (u > 1e-2 * u.max())
        if not active.any():
            break
        penalty += float(np.mean((agreement @ u)[active] / conflicts[active]))
        u = _ascend(agreement + np.float32(penalty) * compatible, u, penalty, steps)
    size = max(round(float(u @ (agreement @ u))), 3)
    mask = np.zeros(len(X), dtype=bool)
    mask[np.argsort(-u)[:size]] = True
    rotation, translation = procrustes(X[mask], Y[mask])
    return rotation, translation, residual_norms(X, Y, rotation, translation) < bound


def _ascend(matrix, u, penalty, steps):
    """Climb u' (matrix - penalty) u on the sphere, entries not negative, steps halved until they help."""

    def product(v):
        return matrix @ v - penalty * v.sum()

    image = product(u)
    step = 1.0
    for _ in range(steps):
        value = u @ image
        gradient = image - value * u
        step = min(4 * step, 1 / max(float(np.abs(gradient).max()), 1e-12))
        for _ in range(20):
            proposal = np.maximum(u + step * gradient, 0)
            proposal /= max(float(np.linalg.norm(proposal)), 1e-12)
            proposed_image = product(proposal)
            if proposal @ proposed_image > value:
                break
            step /= 2
        else:
            return u
        moved = float(np.abs(proposal - u).max() / proposal.max())
        u, image = proposal, proposed_image
        if moved < 1e-2:
            break
    return u
