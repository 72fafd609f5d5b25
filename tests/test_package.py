from __future__ import annotations

import pytest

import inlier


def test_every_public_name_is_there_and_has_an_example():
    for name in inlier.__all__:
        value = getattr(inlier, name)
        assert value.__doc__
        if name[0].isupper() and name != "MatchResult":
            assert ">>>" in value.__doc__, f"{name} has no example"
    assert set(inlier.__all__) <= set(dir(inlier))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Matcher'"):
        _ = inlier.Matcher


def test_version():
    assert inlier.__version__.count(".") == 2
