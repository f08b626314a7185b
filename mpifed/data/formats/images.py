"""Images in IDX files, the format of MNIST, and in folders of JPEG and PNG files that are opened when rows are read."""

import gzip
import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError, import_required
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import at_most, reading
from mpifed.data.pool import LazyMatrix

LARGEST = 1 << 31  # bytes of values; MNIST has 47 million
UNSIGNED_BYTE = 8
NO_PILLOW = 'data = "medical-mnist" needs Pillow to read images: pip install "mpifed[data]"'
SUFFIXES = (".jpeg", ".jpg", ".png")


def read_idx(path: Path, dimensions: int) -> Array:
    """Return the unsigned bytes of an IDX file, plain or gzip, as an array with this number of ``dimensions``.

    The format is a magic number, the length of each dimension, then one byte per value: yann.lecun.com/exdb/mnist.
    Memory is allocated only for bytes that the file holds. Raises UserError if the magic number is wrong, or if the
    file holds fewer or more bytes than its lengths declare.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if packed else open
    with reading(path, "IDX"), opener(path, "rb") as file:
        head = file.read(4 + 4 * dimensions)
        if head[:4] != bytes([0, 0, UNSIGNED_BYTE, dimensions]):
            wanted = f"an IDX file of unsigned bytes in {dimensions} dimensions"
            raise UserError(f"{path} is not {wanted}: it begins with {head[:4].hex()}, not 000008{dimensions:02x}")
        if len(head) < 4 + 4 * dimensions:
            raise UserError(f"{path} ends in its header: {len(head)} bytes are too few for {dimensions} dimensions")
        shape = tuple(int(length) for length in np.frombuffer(head, ">u4", offset=4))
        size = math.prod(shape)
        declared = f"{path} declares {' x '.join(map(str, shape))} bytes"
        if size > LARGEST:
            raise UserError(f"{declared}: more than {LARGEST >> 30} GiB is not supported")
        data = at_most(file, size + 1)
    if len(data) != size:
        raise UserError(f"{declared}, but holds {len(data) if len(data) < size else 'more'}")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def scale_pixels(X: Array, mean: float, deviation: float) -> LazyMatrix:
    """Return the matrix of pixels (x/255 − mean)/deviation of bytes x."""
    # Bytes in memory, and numbers when rows are read: MNIST takes 47 MB instead of 376.
    return LazyMatrix(X, pixel_levels(mean, deviation).take)


def pixel_levels(mean: float, deviation: float) -> Array:
    """Return the number (x/255 - mean)/deviation for each byte x: (256,)."""
    return (np.arange(256) / 255 - mean) / deviation


def find_images(root: Path) -> tuple[list[str], Array]:
    """Return the paths of all images in the folders of ``root``, and the number of each one's folder as its class."""
    paths: list[str] = []
    numbers: list[int] = []
    for folder in sorted(entry.path for entry in os.scandir(root) if entry.is_dir()):
        images = (entry for entry in os.scandir(folder) if entry.name.lower().endswith(SUFFIXES) and entry.is_file())
        if members := sorted(entry.path for entry in images):
            paths += members
            # Folders without images are not counted: they would be classes without samples.
            numbers += [numbers[-1] + 1 if numbers else 0] * len(members)
    return paths, np.array(numbers, np.int64)


class FolderImages:
    """Matrix (d, channels · size²) of images, with pixels (x/255 - 0.5)/0.5, one channel after the other.

    Images of another size are resized (bilinear). Raises UserError with the name of a file that is no image.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, paths: list[str], size: int, colour: bool) -> None:
        self.paths = paths
        self.size = size
        self.mode = "RGB" if colour else "L"
        self.shape = (len(paths), (3 if colour else 1) * size * size)
        self.level = pixel_levels(0.5, 0.5)

    def __getitem__(self, index: Any) -> Array:
        import_required("PIL", NO_PILLOW)
        from PIL import Image

        selected = np.arange(len(self.paths))[index]
        rows = np.empty((len(selected), self.shape[1]))
        with warnings.catch_warnings():
            # Warnings of palettes are ignored, because convert() handles these. An image that would unpack to more
            # memory than there is must be an error, of which Pillow only warns.
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            for row, number in zip(rows, selected, strict=True):
                row[:] = self.level[self.pixels(Image, self.paths[number])]
        return rows

    def pixels(self, Image: Any, path: str) -> Array:
        """Return the bytes of an image file: (channels · size²,)."""
        try:
            with Image.open(path, formats=("JPEG", "PNG")) as file:
                image = file.convert(self.mode)
        except Exception as error:  # Pillow raises errors of many types for damaged files
            raise UserError(f"{path} cannot be read as a JPEG or PNG image: {type(error).__name__}") from error
        if image.size != (self.size, self.size):
            image = image.resize((self.size, self.size), Image.Resampling.BILINEAR)
        return np.moveaxis(np.atleast_3d(np.asarray(image)), 2, 0).ravel()
