from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from inlier.images import METHODS, Alignment, detect_changes

RED, GREY = (190, 50, 40), (60, 60, 60)
HARD = {"gain": (0.75, 0.8, 0.95), "gamma": 1.15, "field": 0.15}


@pytest.mark.parametrize("thing", [RED, GREY])
@pytest.mark.parametrize("light", [{}, HARD], ids=["same light", "other light"])
def test_a_new_object_is_found_in_other_light_with_noise_and_a_shift(camera, truth, thing, light):
    changes = detect_changes(camera(0), camera(1, thing=thing, **light), random_state=0)
    moved = detect_changes(camera(0), camera(1, thing=thing, shift=(2, -2), **light), random_state=0)
    for found, where in ((changes, truth), (moved, np.roll(truth, (2, -2), (0, 1)))):
        assert len(found.regions) == 1
        assert average_precision_score(where.ravel(), found.scores.ravel()) > 0.9
        assert found.mask[where].mean() > 0.8
        assert (found.mask & ~where).sum() < 0.6 * where.sum()
        region = found.regions[0]
        assert abs((region.left + region.right) / 2 - 335) < 12
        assert abs((region.top + region.bottom) / 2 - 175) < 12
        assert region.area == found.mask.sum()
        assert region.p_value <= region.q_value <= 0.05


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("light", [{}, {"gain": (0.75, 0.8, 0.95)}, HARD], ids=["same", "white balance", "all"])
def test_nothing_is_found_where_nothing_has_changed(camera, seed, light):
    shift = (0.7 * (seed % 3), -1.0 * (seed % 2))
    changes = detect_changes(camera(seed), camera(100 + seed, shift=shift, **light), random_state=seed)
    assert changes.regions == []
    assert not changes.mask.any()
    assert changes.sentence == "Nothing has changed that noise and light do not explain."


@pytest.mark.parametrize("seed", range(2))
def test_photos_held_in_the_hand(camera, truth, seed):
    """Perspective and lens move the corners by up to a twentieth of the width; what is new is found all the same."""
    rng = np.random.default_rng(seed)
    shift, perspective, lens = rng.uniform(-8, 8, 2), rng.uniform(-2e-5, 2e-5, 2), rng.uniform(-0.01, 0.01)
    matrix = np.array([[1.0, 0.005, shift[0]], [-0.005, 1.0, shift[1]], [*perspective, 1.0]])
    hand = Alignment(matrix, 1.0, "moved", bend=np.zeros((18, 26, 2)), lens=lens)
    assert 5 < hand.shift(*truth.shape) < 0.05 * truth.shape[1]
    inner = np.s_[20:-20, 20:-20]
    before, same, other = (camera(number, thing=thing) for number, thing in ((0, None), (1, None), (2, RED)))
    assert detect_changes(before[inner], hand.apply(same)[inner]).regions == []
    where = hand.apply(np.repeat(truth[..., None] * np.uint8(255), 3, 2))[inner][..., 0] > 127
    changes = detect_changes(before[inner], hand.apply(other)[inner])
    assert len(changes.regions) == 1
    assert changes.mask[where].mean() > 0.8


def test_equal_photos_are_identical(camera):
    changes = detect_changes(camera(0), camera(0))
    assert changes.identical
    assert changes.verdict == "unchanged"
    assert changes.sentence == "The photos are identical: no pixel differs."
    assert repr(changes) == "<Changes: The photos are identical: no pixel differs.>"


RAMP = np.round(np.linspace(0, 120, 480) + np.linspace(0, 100, 320)[:, None]).astype(np.uint8)


@pytest.mark.parametrize("gain", [0.9, 0.97, 1.03, 1.1])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_photos_without_noise_differ_by_rounding_and_are_unchanged(gain, noise):
    before, after = (
        np.clip(np.round(g * RAMP + noise * np.random.default_rng(s).normal(size=RAMP.shape)), 0, 255).astype(np.uint8)
        for s, g in ((0, 1.0), (1, gain))
    )
    assert detect_changes(before, after).regions == []


def test_a_patch_copied_in_an_edited_file_is_the_only_change():
    edited = RAMP.copy()
    edited[100:140, 100:150] = RAMP[270:310, 400:450]
    (region,) = detect_changes(RAMP, edited).regions
    assert (region.left + region.right) / 2 == pytest.approx(125, abs=8)
    assert (region.top + region.bottom) / 2 == pytest.approx(120, abs=8)


@pytest.mark.parametrize("gain", [0.8, 1.3, 1.6])
def test_what_is_overexposed_has_not_changed(camera, truth, gain):
    before = np.clip(1.3 * camera.scene, 0, 255).astype(np.uint8)
    after = np.clip(gain * camera.scene, 0, 255).astype(np.uint8)
    assert detect_changes(before, after).regions == []
    after[150:200, 300:370] = RED
    assert (detect_changes(before, after).mask & truth).any()


@pytest.fixture(scope="module")
def eight(camera):
    return [camera(seed, thing=thing) for seed, thing in ((0, None), (1, RED))]


@pytest.fixture(scope="module")
def changes_of_eight(eight):
    return detect_changes(*eight)


@pytest.mark.parametrize(("bits", "shift"), [(10, 0), (10, 1), (12, 0), (12, 1), (16, 0)])
def test_the_bits_of_the_camera_do_not_matter(eight, changes_of_eight, bits, shift):
    """Shifted up: as files of 16 bits have it whose lowest bits are never set."""
    factor, up = (2**bits - 1) / 255, 2 ** (16 - bits) if shift else 1
    deep = [(np.round(photo * factor) * up).astype(np.uint16) for photo in eight]
    changes = detect_changes(*deep)
    assert (changes.mask != changes_of_eight.mask).mean() < 0.01
    assert any(f"{bits} bits" in note for note in changes.notes) == (bits < 16 and not shift)
    assert changes.before.dtype == np.uint8
    assert np.abs(changes.before.astype(int) - eight[0]).max() <= 3


def test_fractions_and_heights_have_their_own_range(eight, truth):
    for made in (
        lambda photo: photo / 255,
        lambda photo: photo * 37.5 - 1000.25,
        lambda photo: photo.astype(np.int16) - 99,
    ):
        changes = detect_changes(*map(made, eight))
        assert len(changes.regions) == 1
        assert changes.mask[truth].mean() > 0.8


def test_one_range_for_both_photos(camera):
    dark = (camera(0).astype(np.uint16) * 4, camera(1).astype(np.uint16))
    changes = detect_changes(*dark)
    assert changes.before.max() > 200
    assert changes.after.max() < 70
    assert "bits as asked for" in " ".join(detect_changes(*dark, bits=12).notes)


def test_what_is_transparent_is_not_there(camera, truth):
    before, after = camera(0), camera(1, thing=RED)
    clear = np.dstack([before, np.full(truth.shape, 255, np.uint8)])
    clear[:60, :, 3] = 0
    assert detect_changes(clear, camera(1)).regions == []
    changes = detect_changes(clear, after)
    assert len(changes.regions) == 1
    assert not changes.mask[:60].any()
    clear[130:220, 280:390, 3] = 0
    assert detect_changes(clear, after).regions == []
    assert detect_changes(after, clear).regions == []
    holes = before.astype(float)
    holes[:60] = np.nan
    assert len(detect_changes(holes, after.astype(float)).regions) == 1


def test_flat_photos_with_noise_are_unchanged():
    random = np.random.default_rng(0)
    before, after = (np.clip(random.normal(120, 3, (120, 160, 3)), 0, 255).astype(np.uint8) for _ in range(2))
    assert detect_changes(before, after).regions == []


def test_photos_with_nothing_in_common_are_not_called_unchanged():
    random = np.random.default_rng(0)
    before, after = random.integers(0, 255, (2, 200, 300, 3), dtype=np.uint8)
    with pytest.warns(UserWarning, match="do not show the same scene"):
        changes = detect_changes(before, after, align=False)
    assert changes.sentence == "The photos do not show the same scene."
    assert changes.caution.startswith("Their brightness correlates by 0.0")
    assert "--same-scene (same_scene=True)" in changes.caution
    assert changes.regions == []
    assert (changes.verdict, changes.to_dict()["verdict"]) == ("different scenes", "different scenes")
    promised = detect_changes(before, after, align=False, same_scene=True)
    assert promised.verdict != "different scenes"
    assert not promised.alignment.same_scene
    assert promised.sentence.startswith("No region stands out; but the photos agree too little")
    assert "because you say" in promised.notes[-1]


def test_what_a_moved_camera_and_little_agreement_mean_is_said(camera):
    changes = detect_changes(camera(0), camera(1, thing=RED))
    assert "a reflection may be listed" in changes.caution
    assert changes.notes == ()
    assert "near thing" in detect_changes(camera(0), camera(1, thing=RED, shift=(6, -9))).caution
    random = np.random.default_rng(0)
    sky, other = (np.clip(random.normal(120, 2, (120, 160, 3)), 0, 255).astype(np.uint8) for _ in range(2))
    sky[40:80, 60:100] = RED
    assert "agree little" in " ".join(detect_changes(other, sky).notes)


def test_photos_without_any_noise_are_handled():
    before = np.full((100, 140, 3), 90, np.uint8)
    after = before.copy()
    after[40:60, 60:90] = (200, 30, 30)
    assert detect_changes(before, before).regions == []
    changes = detect_changes(before, after)
    assert len(changes.regions) == 1
    assert changes.mask[50, 75]


def test_gain_of_each_colour_does_not_matter(camera, truth):
    before, after = camera(0), camera(1, thing=RED)
    dimmed = np.round(after * np.array([0.8, 0.9, 0.7])).astype(np.uint8)
    plain, dim = detect_changes(before, after), detect_changes(before, dimmed)
    assert np.corrcoef(plain.scores.ravel(), dim.scores.ravel())[0, 1] > 0.98
    assert (plain.mask != dim.mask).mean() < 0.005


def test_mirroring_both_photos_mirrors_the_answer(camera):
    before, after = camera(0), camera(1, thing=RED)
    plain = detect_changes(before, after, align=False)
    mirrored = detect_changes(before[:, ::-1], after[:, ::-1], align=False)
    assert (plain.mask != mirrored.mask[:, ::-1]).mean() < 0.005


def test_an_object_taken_away_is_found_as_well_as_one_put_there(camera, truth):
    changes = detect_changes(camera(0, thing=RED), camera(1))
    assert len(changes.regions) == 1
    assert average_precision_score(truth.ravel(), changes.scores.ravel()) > 0.9


def test_grey_photos_and_a_grey_with_a_coloured_one(camera, truth):
    before, after = camera(0), camera(1, thing=GREY)
    grey = before.mean(axis=-1).astype(np.uint8)
    for first, second in ((grey, after), (grey, after.mean(axis=-1)), (before, after[..., :1])):
        changes = detect_changes(first, second, alpha=0.01)
        assert len(changes.regions) == 1
        assert changes.mask[truth].mean() > 0.8


def test_an_object_of_half_the_size_of_a_large_photo(camera, truth):
    large = [np.kron(camera(seed, thing=thing), np.ones((3, 3, 1), np.uint8)) for seed, thing in ((0, None), (1, RED))]
    changes = detect_changes(*large)
    assert changes.mask.shape == large[1].shape[:2]
    assert len(changes.regions) == 1
    assert changes.mask[np.kron(truth, np.ones((3, 3), bool))].mean() > 0.8


def test_alpha_decides_and_the_seed_repeats(camera):
    faint = camera(1, thing=camera.scene[150:200, 300:370] * 0.9 + 12)
    chances = [region.p_value for region in detect_changes(camera(0), faint, alpha=0.9).regions]
    assert chances
    below = min(chances) / 2
    assert detect_changes(camera(0), faint, alpha=below).regions == []
    once, again = (detect_changes(camera(0), faint, random_state=3) for _ in range(2))
    assert np.array_equal(once.scores, again.scores)


@pytest.mark.parametrize("method", ["row-sum", "eigenvector"])
def test_the_papers_methods_judge_every_pixel_as_a_pair_of_colours(camera, method):
    from inlier import EigenvectorMatcher, RowSumMatcher

    before, after = camera(0), camera(1, thing=RED)
    changes = detect_changes(before, after, method=method, align=False)
    matcher = {"row-sum": RowSumMatcher, "eigenvector": EigenvectorMatcher}[method]()
    matcher.fit(before.reshape(-1, 3), after.reshape(-1, 3))
    assert np.array_equal(changes.mask.ravel(), ~matcher.inlier_mask_)
    assert np.allclose(changes.scores.ravel(), -matcher.scores_, rtol=1e-5)
    areas = [region.area for region in changes.regions]
    assert areas == sorted(areas, reverse=True)
    assert changes.to_dict()["alpha"] is None


def test_the_answer_is_ready_for_json(camera):
    content = json.loads(json.dumps(detect_changes(camera(0), camera(1, thing=RED)).to_dict()))
    assert (content["width"], content["height"]) == (480, 320)
    assert (content["verdict"], content["identical"]) == ("changed", False)
    assert content["regions"][0]["area"] > 1000
    assert content["alignment"]["method"] in {"none", "brightness"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"alpha": 2.0}, "alpha"),
        ({"align": "yes"}, "align"),
        ({"before": np.zeros((20, 50, 3), np.uint8)}, "at least 32 x 32"),
        ({"before": np.zeros((50, 50, 5), np.uint8)}, "how opaque it is; got \\(50, 50, 5\\)"),
        ({"before": np.zeros((320, 480, 4), np.uint8)}, "Hardly a pixel is shown by both"),
        ({"same_scene": 1}, "same_scene"),
        ({"bits": 0}, "bits"),
        ({"bits": 7}, "at least, not 7"),
        ({"before": np.linspace(0, 1, 2500).reshape(50, 50), "bits": 8}, "these photos hold fractions"),
        ({"before": np.zeros(50)}, "got \\(50,\\)"),
        ({"before": np.full((50, 50), "x")}, "must hold numbers"),
        ({"before": np.full((50, 50), np.nan)}, "NaN or infinity in all 2500"),
        ({"before": np.zeros((300, 300, 3), np.uint8)}, "different shapes, 300 x 300 and 480 x 320"),
    ],
)
def test_bad_input_is_a_sentence(camera, change, message):
    arguments = {"before": camera(0), "after": camera(1), **change}
    with pytest.raises(ValueError, match=message):
        detect_changes(**arguments)


def test_methods_are_named():
    assert METHODS == ("calibrated", "row-sum", "eigenvector")


def test_real_photos_beat_the_absolute_difference(real_data):
    from inlier.images import read_photo

    rooms = real_data / "change" / "rooms"
    before, after = (read_photo(rooms / f"cuisine_{name}.jpg") for name in ("reference", "6565_B"))
    truth = read_photo(rooms / "cuisine_6565_mask.png") > 127
    changes = detect_changes(before, after)
    plain = np.abs(before.astype(float) - after).mean(axis=-1)
    ours, theirs = (average_precision_score(truth.ravel(), score.ravel()) for score in (changes.scores, plain))
    assert ours > theirs + 0.2


def test_a_change_of_a_third_of_the_photo_is_found(camera):
    after = camera(1, **HARD)
    after[:, :160] = camera(2)[::-1, 160:320]  # a wall of another texture
    changes = detect_changes(camera(0), after)
    assert changes.mask[:, :160].mean() > 0.2
    assert changes.mask[:, 180:].mean() < 0.05
