from __future__ import annotations

import sys
from importlib.resources import files

import nibabel
import numpy as np
import pytest
from nibabel import cifti2

from inlier.datasets import brain_features, load_brain


def test_the_shipped_table():
    brain = load_brain()
    assert brain.features.shape == (29_268, 6)
    assert brain.feature_names == ("x", "y", "z", "thickness", "curvature", "myelin")
    coordinates = brain.features[:, :3]
    np.testing.assert_allclose(coordinates.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.abs(coordinates).max(axis=0), 3)
    assert np.isfinite(brain.features).all()


def test_it_is_under_a_megabyte_and_has_its_notice():
    data = files("inlier.datasets") / "data"
    assert len((data / "brain_conte69_left.npz").read_bytes()) < 1_000_000
    assert "BrainSpace developers" in (data / "LICENSE-brainspace").read_text()


def test_extreme_myelin_is_dropped_first():
    rng = np.random.default_rng(0)
    xyz, maps = rng.standard_normal((20_000, 3)), rng.uniform(size=(3, 20_000))
    maps[2, :2] = 100.0
    xyz[:2] = 1000.0  # must not decide the scale of the axes
    features = brain_features(xyz, *maps)
    assert len(features) == 19_998
    np.testing.assert_allclose(np.abs(features[:, :3]).max(axis=0), 3)
    np.testing.assert_array_equal(features[:, 3:], maps[:, 2:].T)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"shape \(5, 2\) for 5 vertices"):
        brain_features(np.ones((5, 2)), *np.ones((3, 5)))


class TestWorkbenchFiles:
    @pytest.fixture
    def maps(self):
        rng = np.random.default_rng(0)
        return {
            "xyz": rng.standard_normal((300, 3)).astype(np.float32),
            "corrThickness": rng.uniform(1, 4, 300).astype(np.float32),
            "curvature": rng.normal(size=300).astype(np.float32),
            "MyelinMap": rng.uniform(1, 2, 300).astype(np.float32),
        }

    @staticmethod
    def write_surface(directory, xyz):
        faces = np.array([[0, 1, 2]], dtype=np.int32)
        image = nibabel.GiftiImage(
            darrays=[
                nibabel.gifti.GiftiDataArray(xyz, intent="NIFTI_INTENT_POINTSET"),
                nibabel.gifti.GiftiDataArray(faces, intent="NIFTI_INTENT_TRIANGLE"),
            ]
        )
        nibabel.save(image, directory / "S1200.L.midthickness_MSMAll.32k_fs_LR.surf.gii")

    def test_gifti(self, maps, tmp_path):
        self.write_surface(tmp_path, maps["xyz"])
        for name in ("corrThickness", "curvature", "MyelinMap"):
            values = nibabel.gifti.GiftiDataArray(maps[name], intent="NIFTI_INTENT_SHAPE")
            nibabel.save(nibabel.GiftiImage(darrays=[values]), tmp_path / f"S1200.L.{name}.32k_fs_LR.shape.gii")
        np.testing.assert_allclose(load_brain(tmp_path).features, brain_features(*maps.values()), rtol=1e-6)

    def test_cifti_fills_the_medial_wall_with_zeros_and_ignores_other_structures(self, maps, tmp_path):
        self.write_surface(tmp_path, maps["xyz"])
        cortex = np.ones(300, dtype=bool)
        cortex[100:150] = False
        for name in ("corrThickness", "curvature", "MyelinMap"):
            maps[name][~cortex] = 0
            axis = cifti2.BrainModelAxis.from_mask(np.ones(7, bool), "CortexRight") + (
                cifti2.BrainModelAxis.from_mask(cortex, "CortexLeft")
            )
            values = np.concatenate([np.full(7, 99.0), maps[name][cortex]])[None]
            image = cifti2.Cifti2Image(values, (cifti2.ScalarAxis([name]), axis))
            nibabel.save(image, tmp_path / f"S1200.{name}_MSMAll.32k_fs_LR.dscalar.nii")
        (tmp_path / "S1200.SmoothedMyelinMap_MSMAll.32k_fs_LR.dscalar.nii").write_bytes(b"not this one")
        np.testing.assert_allclose(load_brain(tmp_path).features, brain_features(*maps.values()), rtol=1e-6)

    def test_a_missing_map_is_named(self, maps, tmp_path):
        self.write_surface(tmp_path, maps["xyz"])
        with pytest.raises(FileNotFoundError, match=r"holds no file named \*corrThickness\*"):
            load_brain(tmp_path)

    def test_no_folder(self, tmp_path):
        with pytest.raises(NotADirectoryError, match="is not a folder"):
            load_brain(tmp_path / "nowhere")

    def test_a_broken_file(self, tmp_path):
        (tmp_path / "a.L.midthickness.surf.gii").write_text("<GIFTI")
        with pytest.raises(ValueError, match="could not be read as a GIFTI or CIFTI file"):
            load_brain(tmp_path)

    def test_wrong_length(self, maps, tmp_path):
        self.write_surface(tmp_path, maps["xyz"])
        values = nibabel.gifti.GiftiDataArray(maps["curvature"][:200], intent="NIFTI_INTENT_SHAPE")
        nibabel.save(nibabel.GiftiImage(darrays=[values]), tmp_path / "a.L.corrThickness.shape.gii")
        with pytest.raises(ValueError, match="has 200 values, but the surface has 300 vertices"):
            load_brain(tmp_path)

    def test_without_nibabel_the_command_is_named(self, maps, tmp_path, monkeypatch):
        self.write_surface(tmp_path, maps["xyz"])
        monkeypatch.setitem(sys.modules, "nibabel", None)
        with pytest.raises(ImportError, match="pip install 'nibabel'"):
            load_brain(tmp_path)


class TestArrays:
    @pytest.fixture
    def arrays(self):
        rng = np.random.default_rng(0)
        return {
            "xyz": rng.normal(size=(50, 3)),
            **{k: rng.uniform(size=50) for k in ("thickness", "curvature", "myelin")},
        }

    def test_npz(self, arrays, tmp_path):
        np.savez(tmp_path / "mine.npz", faces=np.zeros((4, 3), dtype=int), **arrays)
        brain = load_brain(tmp_path / "mine.npz")
        np.testing.assert_array_equal(brain.features, brain_features(*arrays.values()))
        assert brain.source == "mine.npz"

    def test_a_missing_array_is_named(self, arrays, tmp_path):
        del arrays["myelin"]
        np.savez(tmp_path / "mine.npz", **arrays)
        with pytest.raises(ValueError, match="no array named myelin, only xyz, thickness, curvature"):
            load_brain(tmp_path / "mine.npz")

    @pytest.mark.parametrize("content", [b"", b"words", b"PK\x03\x04 torn"])
    def test_not_an_npz(self, tmp_path, content):
        (tmp_path / "mine.npz").write_bytes(content)
        with pytest.raises(ValueError, match="could not be read as a brain table"):
            load_brain(tmp_path / "mine.npz")

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no brain table at"):
            load_brain(tmp_path / "nowhere.npz")

    def test_wrong_shapes(self, arrays, tmp_path):
        np.savez(tmp_path / "mine.npz", **{**arrays, "xyz": np.ones((50, 2))})
        with pytest.raises(ValueError, match=r"could not be read as a brain table: xyz must have.*\(50, 2\)"):
            load_brain(tmp_path / "mine.npz")

    def test_the_papers_table(self, real_data):
        assert load_brain(real_data / "brain" / "S1200_L_32k.npz").features.shape == (32_488, 6)
