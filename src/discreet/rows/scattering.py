"""The scattering transform of small images: averages of the sizes of wavelet coefficients, with nothing learned.

Source: Bruna-Mallat 2013; as features for private models, Tramèr-Boneh 2021.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.rows.arrays import one_thread

Floats = NDArray[np.float64]
_BLOCK = 64
"""Images are transformed this many at a time, the last ones with zeros added. A transform of a full block treats every
image alike, so what an image gives does not depend on its place, or on other images.
"""
_SLANT = 0.5
_COPIES = range(-2, 3)
_NOISES = 256
_FINE = 26
"""Sizes and sums of an image whose largest pixel is 1 are at most about 1, and are rounded to this many bits."""
_TAP = 24
"""So are the weights of an average, whose sum is near 1: every sum of products is an integer below 2^53."""
_EVEN, _BITS = 0.3, 18
"""Points are divided by their norm and this part of the mean norm: where an image has little, little is left."""


class Bank(NamedTuple):
    """Wavelets of every scale and angle, and the average, as the Fourier transforms of real filters."""

    waves: dict[tuple[int, int], Floats]
    average: Floats


class Scattering:
    """All paths of at most two wavelets, of `scales` scales and `angles` angles, for square images of `side` pixels.

    A path is |…|x ⋆ ψ₁| ⋆ ψ₂|, averaged over 2^scales pixels. The features are signed square roots, divided by the
    deviation that the path has on noise with the spectrum of natural images. That is a public number.
    """

    def __init__(self, side: int, scales: int = 2, angles: int = 8) -> None:
        self.side, self.scales, self.angles = side, scales, angles
        self._edge = 2**scales
        self._size = -(-side // self._edge) * self._edge + 2 * self._edge
        self.points = -(-side // self._edge)

    @cached_property
    def paths(self) -> list[tuple[tuple[int, int], ...]]:
        """The wavelets of each path: none, one, or two of which the second is coarser."""
        first = list(product(range(self.scales), range(self.angles)))
        pairs = [(one, two) for one in first for two in first if two[0] > one[0]]
        return [(), *((one,) for one in first), *pairs]

    @property
    def features(self) -> int:
        """The number of features of one image."""
        return int(len(self.paths) * self.points**2)

    def __call__(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """The features of each image: images × features. A pixel that is not a finite number makes them all 0."""
        found = np.empty((len(images), self.features), dtype=np.float32)
        deviations = np.repeat(self._deviations, self.points**2).astype(np.float32)

        def fill(start: int) -> None:
            block = np.asarray(images[start : start + _BLOCK], dtype=np.float32)
            with np.errstate(all="ignore"):
                known = np.asarray(np.isfinite(block).all((1, 2)))
                block = np.where(known[:, None, None], block, np.float32(0))
                found[start : start + _BLOCK] = self._roots(block) / deviations * known[:, None]

        _in_blocks(fill, len(images))
        return found

    def even(self, features: NDArray[np.float32]) -> None:
        """Make all points of an image about equally strong, and all features of an image together of norm 1.

        `features` are images × (any number of paths × points), and are changed in place. Each point is divided by its
        norm over all paths, plus a part of the mean norm.
        """

        def fill(start: int) -> None:
            block = features[start : start + _BLOCK]
            with np.errstate(all="ignore"):
                paths = block.reshape(len(block), -1, self.points**2).astype(np.float64)
                largest = np.abs(paths).max((1, 2), keepdims=True)
                # sums of squares of integers are exact, in any order
                paths = np.rint(paths / np.where(largest > 0, largest, 1) * 2**_BITS)
                squares = (paths * paths).sum(1, keepdims=True)
                norms = np.sqrt(squares) + _EVEN * np.sqrt(squares.mean(2, keepdims=True))
                norms *= np.sqrt((squares / np.where(norms > 0, norms, 1) ** 2).sum(2, keepdims=True))
                features[start : start + _BLOCK] = (paths / np.where(norms > 0, norms, 1)).reshape(block.shape)

        _in_blocks(fill, len(features))

    # --- filters ------------------------------------------------------------------------------------------------

    @cached_property
    def _bank(self) -> Bank:
        waves = {
            (scale, angle): self._filter(0.8 * 2**scale, 0.75 * np.pi / 2**scale, np.pi * angle / self.angles, _SLANT)
            for scale, angle in product(range(self.scales), range(self.angles))
        }
        return Bank(waves, self._filter(0.8 * 2 ** (self.scales - 1), 0.0, 0.0, 1.0))

    def _filter(self, width: float, frequency: float, angle: float, slant: float) -> Floats:
        """The transform of a Morlet wavelet on a torus, or of a Gaussian if the frequency is 0."""
        wave = self._bump(width, frequency, angle, slant)
        if frequency:  # its mean must be 0
            flat = self._bump(width, 0.0, angle, slant)
            wave = wave - flat * (wave.sum() / flat.sum())
        return np.asarray(np.fft.fft2(wave).real)

    def _bump(self, width: float, frequency: float, angle: float, slant: float) -> NDArray[np.complex128]:
        """A Gaussian times a wave, with what lies beyond the edges of the torus on its other side."""
        total = np.zeros((self._size, self._size), dtype=np.complex128)
        for down, right in product(_COPIES, _COPIES):
            y = np.arange(self._size)[:, None] + down * self._size
            x = np.arange(self._size)[None] + right * self._size
            along, across = y * np.cos(angle) + x * np.sin(angle), x * np.cos(angle) - y * np.sin(angle)
            total += np.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2) + 1j * frequency * along)
        return np.asarray(total * (slant / (2 * np.pi * width**2)), dtype=np.complex128)

    @cached_property
    def _taps(self) -> list[Floats]:
        """For images at each resolution, what each pixel of a line adds to each point of the average, as integers."""
        exact = self._bank.average[0]  # the average is a product of one function of each axis
        found = []
        for scale in range(self.scales + 1):
            size, step = self._size >> scale, 1 << (self.scales - scale)
            kernel = np.fft.ifft(exact.reshape(1 << scale, size).sum(0)).real
            inside = np.arange(1, 1 + self.points) * step
            found.append(np.rint(np.stack([np.roll(kernel, at) for at in inside]) * 2**_TAP))
        return found

    @cached_property
    def _waves(self) -> dict[tuple[int, int, int], NDArray[np.float32]]:
        """The filter of each wavelet for images of each resolution, divided by how many pixels are left out then."""
        found = {}
        for (scale, angle), wave in self._bank.waves.items():
            for before in range(scale + 1):
                many = 4 ** (scale - before)
                found[scale, angle, before] = (_folded_filter(wave, 1 << before) / many).astype(np.float32)
        return found

    # --- the transform of a block, with the image as the last axis ------------------------------------------------

    def _roots(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """The signed square roots of all averages: images × (paths × points²)."""
        many, before = len(images), self._edge
        full = np.zeros((_BLOCK, self.side, self.side), dtype=np.float32)
        _, size = np.frexp(np.abs(images).max((1, 2)))
        full[:many] = np.ldexp(images, -size[:, None, None])  # pixels up to 1, so that sums have bounds
        after = self._size - self.side - before
        block = np.pad(full, ((0, 0), (before, after), (before, after)), mode="reflect")
        block = np.ascontiguousarray(np.moveaxis(block, 0, -1))
        found = np.stack(list(self._averages(block))).reshape(-1, _BLOCK)[:, :many].T
        found = np.ldexp(found.astype(np.float32), (size % 2)[:, None])
        roots = np.copysign(np.sqrt(np.abs(found)), found)
        return np.asarray(np.ldexp(roots, (size // 2)[:, None]), dtype=np.float32)

    def _averages(self, block: NDArray[np.float32]) -> Iterator[Floats]:
        from scipy import fft

        first = list(product(range(self.scales), range(self.angles)))
        whole = fft.fft2(block, axes=(0, 1))
        pairs: list[Floats] = []
        yield self._averaged(block, 0)
        for scale, angle in first:
            sizes = self._sizes(whole, self._waves[scale, angle, 0], 1 << scale)
            yield self._averaged(sizes, scale)
            if scale + 1 < self.scales:
                coarse = fft.fft2(sizes, axes=(0, 1))
                for other, second in product(range(scale + 1, self.scales), range(self.angles)):
                    sizes = self._sizes(coarse, self._waves[other, second, scale], 1 << (other - scale))
                    pairs.append(self._averaged(sizes, other))
        yield from pairs

    def _sizes(self, transformed: Any, wave: NDArray[np.float32], coarser: int) -> NDArray[np.float32]:
        """The sizes of the coefficients of a wavelet, at every `coarser`-th pixel."""
        from scipy import fft

        # real products of real and imaginary parts: a product of complex numbers may be rounded in another way
        parts, size = transformed.view(np.float32), transformed.shape[0] // coarser
        folded = np.zeros((size, size, parts.shape[2]), dtype=np.float32)
        for down, right in product(range(coarser), range(coarser)):
            place = slice(down * size, (down + 1) * size), slice(right * size, (right + 1) * size)
            folded += parts[place] * wave[place][..., None]
        both = fft.ifft2(folded.view(np.complex64), axes=(0, 1), overwrite_x=True).view(np.float32)
        both *= both
        found = both[..., ::2] + both[..., 1::2]
        return np.asarray(np.sqrt(found, out=found))

    def _averaged(self, sizes: NDArray[np.float32], scale: int) -> Floats:
        """The average around each point, one axis after the other. Products of integers: exact in any order."""
        taps = self._taps[scale]
        whole = np.multiply(sizes, 2.0**_FINE, dtype=np.float64)
        rows = np.dot(taps, np.rint(whole, out=whole).reshape(len(sizes), -1))
        rows *= 2.0**-_TAP
        rows = np.rint(rows, out=rows).reshape(self.points, *sizes.shape[1:])
        return np.asarray(np.matmul(taps, rows) * 2.0 ** -(_FINE + _TAP))

    @cached_property
    def _deviations(self) -> Floats:
        """The deviation of each path's features on noise whose spectrum falls with the frequency, as in nature."""
        along = np.fft.fftfreq(self.side)
        frequency = np.hypot(along[:, None], along[None])
        falling = np.divide(1, frequency, out=np.zeros_like(frequency), where=frequency > 0)
        squares = np.arange(1, self.side**2 + 1).reshape(frequency.shape) ** 2
        phases = np.sqrt(2) * np.arange(1, _NOISES + 1)[:, None, None] * squares % 1  # public, and spread evenly
        noise = np.fft.ifft2(falling * np.exp(2j * np.pi * phases)).real
        images = (0.5 + 0.25 * noise / noise.std()).astype(np.float32)
        found = np.concatenate([self._roots(images[start : start + _BLOCK]) for start in range(0, _NOISES, _BLOCK)])
        return np.asarray(found.reshape(_NOISES, len(self.paths), -1).std((0, 2)), dtype=np.float64)


def _in_blocks(fill: Callable[[int], None], images: int) -> None:
    """Call `fill` with the first image of each block."""
    with one_thread(), ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(fill, range(0, images, _BLOCK)))


def _folded_filter(wave: Floats, coarser: int) -> Floats:
    """The transform of a filter at every `coarser`-th pixel."""
    if coarser == 1:
        return wave
    size = len(wave) // coarser
    return np.asarray(wave.reshape(coarser, size, coarser, size).sum((0, 2)))
