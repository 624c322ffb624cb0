"""Public features of images: what they are, that each image is read by itself, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.learn.features import Scattering
from discreet.rows import scattering
from discreet.rows.scattering import Scattering as Transform

from ..refusing import refuses

RANDOM = np.random.default_rng(5)


def plainly(images: Any, transform: Transform) -> Any:
    """The same averages by plain convolutions on the torus, in doubles, at full resolution."""
    edge, size = 2**transform.scales, transform._size
    after = size - transform.side - edge
    padded = np.pad(images.astype(float), ((0, 0), (edge, after), (edge, after)), mode="reflect")

    def convolved(values: Any, wave: Any) -> Any:
        return np.fft.ifft2(np.fft.fft2(values) * wave)

    inside = np.arange(1, 1 + transform.points) * edge
    averages = []
    for path in transform.paths:
        values = padded
        for wavelet in path:
            values = np.abs(convolved(values, transform._bank.waves[wavelet]))
        averages.append(convolved(values, transform._bank.average).real[:, inside][:, :, inside])
    return np.stack(averages, 1)


@pytest.mark.parametrize(("side", "scales", "angles"), [(16, 2, 4), (20, 1, 8), (18, 2, 3), (32, 3, 2)])
def test_they_are_averages_of_sizes_of_wavelets(side: int, scales: int, angles: int) -> None:
    """Against plain convolutions. Coarser grids fold high frequencies, which the wavelets let pass a little."""
    transform, images = Transform(side, scales, angles), RANDOM.random((3, side, side)).astype(np.float32)
    roots = transform._roots(images)
    found = (np.sign(roots) * roots**2).reshape(3, len(transform.paths), transform.points, transform.points)
    exact = plainly(images, transform)
    assert found.shape == exact.shape
    assert np.abs(found - exact).max() < 0.01 * np.abs(exact).max()
    first = slice(0, 1 + transform.angles)  # nothing is folded before the average
    assert np.allclose(found[:, first], exact[:, first], atol=2e-4)


def test_wavelets_have_no_mean_and_averages_keep_it() -> None:
    bank = Transform(28)._bank
    assert all(abs(wave[0, 0]) < 1e-12 for wave in bank.waves.values())
    assert bank.average[0, 0] == pytest.approx(1)


def test_an_image_gives_the_same_whatever_the_others_are() -> None:
    """Every bit, at any place, in blocks that are full or not."""
    images = RANDOM.random((scattering._BLOCK + 9, 16, 16)).astype(np.float32)
    transform = Transform(16)
    whole = transform(images)
    for places in ([3], [70, 1, 2], list(range(72, -1, -1))):
        assert np.array_equal(transform(images[places]), whole[places])
    odd = images.copy()
    odd[4, 3, 3] = np.nan
    odd[5] = 1e30
    others = [place for place in range(len(images)) if place not in (4, 5)]
    assert np.array_equal(transform(odd)[others], whole[others])
    assert not transform(odd)[4].any()


def test_all_points_are_about_equally_strong() -> None:
    """Against plain sums. An image without anything has no features, and what is beside an image changes no bit."""
    transform = Transform(16)
    images = RANDOM.random((scattering._BLOCK + 2, 16, 16)).astype(np.float32)
    images[:, :8] *= 0.01
    images[3] = 0
    rough = transform(images)
    found = rough.copy()
    transform.even(found)
    before = rough.reshape(len(images), -1, 16).astype(float)
    norms = np.linalg.norm(before, axis=1, keepdims=True)
    exact = before / np.maximum(norms + 0.3 * np.sqrt((norms**2).mean(2, keepdims=True)), 1e-300)
    exact /= np.maximum(np.linalg.norm(exact, axis=(1, 2), keepdims=True), 1e-300)
    assert np.allclose(found, exact.reshape(found.shape), atol=1e-5)
    assert not found[3].any()
    others = np.delete(found, 3, axis=0)
    assert np.allclose(np.linalg.norm(others, axis=1), 1, atol=1e-6)
    strong, even = (np.linalg.norm(one.reshape(-1, 81, 4, 4), axis=1)[0] for one in (rough, found))
    assert strong[0].mean() < 0.6 * strong[3].mean()
    assert even[0].mean() > 0.8 * even[3].mean()
    for places in ([5], [65, 3, 0]):
        alone = rough[places]
        transform.even(alone)
        assert np.array_equal(alone, found[places])


@pytest.mark.slow
def test_several_scales_stand_side_by_side() -> None:
    images = RANDOM.random((3, 16, 16))
    both = Scattering(shape=(16, 16), scales=(1, 3), angles=2).fit_transform(images)
    apart = [Scattering(shape=(16, 16), scales=one, angles=2).fit_transform(images) for one in (1, 3)]
    assert np.array_equal(both, np.concatenate(apart, axis=1))
    assert np.array_equal(
        Scattering(shape=(16, 16)).fit_transform(images),
        Scattering(shape=(16, 16), scales=(2, 3)).fit_transform(images),
    )
    small = RANDOM.random((2, 8, 8))
    assert Scattering(shape=(8, 8)).fit_transform(small).shape == (2, 81 * 4)


def test_features_have_about_one_size_on_natural_noise() -> None:
    transform = Transform(16)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(16), np.fft.fftfreq(16)))
    falling = np.divide(1, frequency, out=np.zeros_like(frequency), where=frequency > 0)
    noise = np.fft.ifft2(np.fft.fft2(RANDOM.normal(size=(200, 16, 16))) * falling).real
    found = transform((0.5 + 0.25 * noise / noise.std()).astype(np.float32))
    deviations = found.reshape(200, len(transform.paths), -1).std((0, 2))
    assert np.all((deviations > 0.8) & (deviations < 1.25))


@pytest.mark.slow
def test_bytes_and_shapes_are_read_by_type() -> None:
    images = RANDOM.integers(0, 256, (5, 16, 16), dtype=np.uint8)
    made = Scattering(shape=(16, 16))
    found = made.fit_transform(images)
    assert found.dtype == np.float32
    assert found.shape == (5, 81 * 4**2 + 217 * 2**2)  # waves of two sizes, and of three
    assert np.array_equal(found, made.fit_transform(images.reshape(5, -1)))
    assert np.array_equal(found, made.fit_transform(images.reshape(5, -1) / np.float32(255)))
    colors = RANDOM.random((3, 16, 16, 3))
    assert Scattering(shape=(16, 16, 3)).fit_transform(colors).shape == (3, 3 * 81 * 16)
    gray = np.repeat(RANDOM.random((2, 16, 16, 1)), 3, axis=3).astype(np.float32)
    three = Scattering(shape=(16, 16, 3)).fit_transform(gray).reshape(2, 3, -1)
    assert np.abs(three[:, 1:]).max() < 0.05 * np.abs(three[:, 0]).max()  # gray images have no differences of color


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"shape": (28, 27)}, "wrong-shape"),
        ({"shape": (28,)}, "wrong-shape"),
        ({"shape": (4, 4)}, "wrong-shape"),
        ({"shape": (28, 28, 2)}, "wrong-shape"),
        ({"shape": 28}, "wrong-shape"),
        ({"scales": 5}, "out-of-range"),
        ({"scales": 4}, "out-of-range"),
        ({"scales": (2, 4)}, "out-of-range"),
        ({"scales": ()}, "out-of-range"),
        ({"angles": 99}, "out-of-range"),
    ],
)
def test_bad_arguments_are_refused(given: Any, code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        Scattering(**{"shape": (28, 28), **given}).fit(np.zeros((1, 784)))


def test_images_of_another_size_are_refused() -> None:
    with refuses(dp.InvalidArgument, "wrong-shape"):
        Scattering(shape=(16, 16)).fit(np.zeros((3, 255)))


def test_all_paths_are_listed_in_order() -> None:
    paths = Transform(28, 2, 8).paths
    assert len(paths) == 81
    assert paths[0] == ()
    assert paths[1:17] == [((scale, angle),) for scale, angle in product(range(2), range(8))]
    assert all(two[0] > one[0] for one, two in paths[17:])


def test_pixels_of_any_size_give_features_of_that_size() -> None:
    """An image is made of size 1 first: four times the pixels are twice the roots, to the last bit."""
    images = np.random.default_rng(5).random((3, 16, 16)).astype(np.float32)
    transform = Transform(16)
    known = transform(images)
    for power in (-90, -6, 2, 126):
        assert np.array_equal(transform(np.ldexp(images, power)), np.ldexp(known, power // 2))
    assert np.isfinite(transform(np.full((1, 16, 16), 3e38, np.float32))).all()


@pytest.mark.parametrize(("side", "scales", "angles"), [(8, 1, 4), (28, 2, 8), (32, 3, 3), (33, 4, 2)])
def test_averages_are_sums_of_integers_that_doubles_hold(side: int, scales: int, angles: int) -> None:
    """No wavelet makes an image larger, so a sum of sizes times weights stays below 2^53."""
    transform = Transform(side, scales, angles)
    longest = max(np.abs(np.fft.ifft2(wave)).sum() for wave in transform._bank.waves.values())
    assert longest <= 1
    for taps in transform._taps:
        assert np.array_equal(taps, np.rint(taps))
        assert np.abs(taps).sum(1).max() * 2**scattering._FINE * 1.5 < 2**53
