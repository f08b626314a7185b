"""Folders of JPEG and PNG images as a matrix with one image per row; an image is opened when its row is read."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.formats.idx import levels

NO_PILLOW = 'data = "medical-mnist" needs Pillow to read images: pip install "mpifed[data]"'
SUFFIXES = (".jpeg", ".jpg", ".png")


def find_images(root: Path) -> tuple[list[str], Array]:
    """Paths of the images in the folders of ``root``, and the number (d,) of the folder of each, alphabetically."""
    paths: list[str] = []
    numbers: list[int] = []
    for folder in sorted(entry.path for entry in os.scandir(root) if entry.is_dir()):
        images = (entry for entry in os.scandir(folder) if entry.name.lower().endswith(SUFFIXES) and entry.is_file())
        if found := sorted(entry.path for entry in images):
            paths += found
            numbers += [numbers[-1] + 1 if numbers else 0] * len(found)
    return paths, np.array(numbers, np.int64)


class FolderImages:
    """Images as rows (d, channels · size²) of numbers (x/255 - 0.5)/0.5, one channel after the other.

    An image of another size is resized (bilinear). UserError names a file that is not a JPEG or PNG image.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, paths: list[str], size: int, colour: bool) -> None:
        self.paths = paths
        self.size = size
        self.mode = "RGB" if colour else "L"
        self.shape = (len(paths), (3 if colour else 1) * size * size)
        self.level = levels(0.5, 0.5)

    def __getitem__(self, index: Any) -> Array:
        try:
            from PIL import Image
        except ImportError:
            raise UserError(NO_PILLOW) from None
        selected = np.arange(len(self.paths))[index]
        rows = np.empty((len(selected), self.shape[1]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about palettes, which convert() handles
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            for row, number in zip(rows, selected, strict=True):
                row[:] = self.level[self.pixels(Image, self.paths[number])]
        return rows

    def pixels(self, Image: Any, path: str) -> Array:
        """The bytes (n,) of an image."""
        try:
            with Image.open(path, formats=("JPEG", "PNG")) as file:
                image = file.convert(self.mode)
        except Exception as error:  # Pillow raises errors of many types for damaged files
            raise UserError(f"{path} cannot be read as a JPEG or PNG image: {type(error).__name__}") from error
        if image.size != (self.size, self.size):
            image = image.resize((self.size, self.size), Image.Resampling.BILINEAR)
        return np.moveaxis(np.atleast_3d(np.asarray(image)), 2, 0).ravel()
