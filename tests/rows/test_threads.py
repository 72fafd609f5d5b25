from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from time import sleep

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from inlier.rows import threads
from inlier.rows.threads import pieces_of_many, row_blocks, rows_per_block, run_in_threads, single_threaded_blas


def blas_threads():
    """Of the libraries that multiply for NumPy and SciPy; others that tests before have loaded bring their own."""
    np.ones((2, 2)) @ np.ones((2, 2))
    known = {library["filepath"] for library in threads._thread_pools().info() if library["user_api"] == "blas"}
    return {library["num_threads"] for library in threadpool_info() if library["filepath"] in known}


def test_ranges_cover_all_rows_in_order():
    ranges = run_in_threads(200_000, lambda rows: (rows.start, rows.stop))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 200_000
    assert all(before[1] == after[0] for before, after in pairwise(ranges))


def test_the_limit_holds_inside_and_is_lifted_after():
    before = blas_threads()
    with single_threaded_blas():
        assert blas_threads() == {1}
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_threads_side_by_side_leave_no_limit_behind():
    before = blas_threads()

    def work(seconds):
        with single_threaded_blas():
            sleep(seconds)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, [0.05, 0.15, 0.1]))
    assert blas_threads() == before


@given(n=st.integers(0, 200_000), width=st.integers(1, 5000))
def test_blocks_cover_every_row_once(n, width):
    blocks = list(row_blocks(n, width))
    assert sum(block.stop - block.start for block in blocks) == n
    assert all(before.stop == after.start for before, after in pairwise(blocks))
    assert all(block.stop - block.start <= rows_per_block(width) for block in blocks)


def test_only_large_tables_are_cut_into_pieces():
    few, many = np.zeros((1000, 300)), np.zeros((20_000, 300))
    assert list(pieces_of_many(few)) == [slice(0, 1000)]
    cut = list(pieces_of_many(many))
    assert len(cut) > 10
    assert [k for rows in cut for k in range(rows.start, rows.stop)] == list(range(20_000))
    assert list(pieces_of_many(many, n_rows=0)) == [slice(0, 0)]
