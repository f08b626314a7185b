"""Public image data, in IDX files and in folders of pictures: digits, MNIST, Fashion-MNIST, Medical MNIST."""

import gzip
import math
import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError, import_required
from mpifed.core.promises import Supports, supporting
from mpifed.core.typing import Array
from mpifed.data.dataset import ClientCount, Dataset
from mpifed.data.formats.arrays import read_samples
from mpifed.data.formats.on_disk import at_most, reading
from mpifed.data.partition import Partition, Shards
from mpifed.data.pool import LazyMatrix, PooledData
from mpifed.data.public import find_data_file, find_files
from mpifed.data.split import TestAmount

LACKING = 'data = "digits" needs scikit-learn, which contains them: pip install "mpifed[data]"'
LARGEST = 1 << 31  # bytes of values; MNIST has 47 million
UNSIGNED_BYTE = 8
NO_PILLOW = 'data = "medical-mnist" needs Pillow to read images: pip install "mpifed[data]"'
SUFFIXES = (".jpeg", ".jpg", ".png")


class ImageSet(PooledData):
    """Base of image data: two shards of one class each per client, 20 % of each client's images for testing (flame)."""

    default_partition: ClassVar[Partition] = Shards(per_client=2, pure=True)

    clients: ClientCount = 50
    test: TestAmount = 0.2


class Digits(ImageSet, tag="digits"):
    """Handwritten digits, 1797 images of 8 x 8 = 64 pixels x/16, bundled with scikit-learn: no download needed.

    Default partition, as in flame: two shards of one class each per client; 80/20 for training and testing at each.
    """

    # Divided by a constant.
    supports = Supports.EVERYTHING

    def check(self) -> None:
        if find_spec("sklearn") is None:
            raise UserError(LACKING)

    def load(self, seed: int, dtype: str) -> Dataset:
        bunch: Any = import_required("sklearn.datasets", LACKING).load_digits()
        return self.deal(bunch.data / 16, bunch.target, seed, dtype, "scikit-learn's digits")


class IdxImages(ImageSet):
    """Base of images in four files like those of MNIST, plain or gzip: pixels (x/255 - mean)/deviation, or x/255."""

    # Both scales are constants known without the data.
    options = supporting("pixels", "part")

    scale: ClassVar[tuple[float, float]]  # mean and deviation

    pixels: Annotated[
        Literal["standardised", "unit"],
        Meta(description="standardised: (x/255 - mean)/deviation of the data set; unit: x/255, as in feddcd"),
    ] = "standardised"
    part: Annotated[
        Literal["auto", "train", "test", "both"],
        Meta(description="train-*: 60,000 images; test: t10k-*, 10,000; auto: train if it exists, else test"),
    ] = "auto"

    def load(self, seed: int, dtype: str) -> Dataset:
        parts = [self.read(part) for part in self.parts()]
        if len({X.shape[1] for _, X, _ in parts}) > 1:
            raise UserError(
                f"{parts[0][0]} has images of {parts[0][1].shape[1]} pixels, {parts[1][0]} of {parts[1][1].shape[1]}: "
                "they must come from the same data set"
            )
        X, y = (np.concatenate(arrays) for arrays in list(zip(*parts, strict=True))[1:])
        scale = self.scale if self.pixels == "standardised" else (0.0, 1.0)
        return self.deal(scale_pixels(X, *scale), y, seed, dtype, str(parts[0][0]))

    def locate(self) -> list[Path]:
        contents = ("images-idx3", "labels-idx1")
        return [
            find_data_file(self.label(), *file_names(part, content)) for part in self.parts() for content in contents
        ]

    def parts(self) -> list[str]:
        """Return the first words in the names of the files to read: train, t10k or both."""
        if self.part == "auto":
            path = find_data_file(self.label(), *file_names("train", "images-idx3"), *file_names("t10k", "images-idx3"))
            return [path.name.split("-")[0]]
        return {"train": ["train"], "test": ["t10k"], "both": ["train", "t10k"]}[self.part]

    def read(self, part: str) -> tuple[Path, Array, Array]:
        """Return the path of the images of a part, X (d, n) of bytes, and y (d,)."""
        path = find_data_file(self.label(), *file_names(part, "images-idx3"))
        labels = find_data_file(self.label(), *file_names(part, "labels-idx1"))
        X, y = read_idx(path, 3), read_idx(labels, 1)
        return path, *read_samples({"X": X.reshape(len(X), X.shape[1] * X.shape[2]), "y": y}, path, "")


def file_names(part: str, content: str) -> list[str]:
    """Return possible names of a file: compressed or not, and with a full stop for the hyphen, as on some servers."""
    return [f"{part}-{content}-ubyte.gz", f"{part}-{content}-ubyte", f"{part}-{content.replace('-', '.')}-ubyte"]


class Mnist(IdxImages, tag="mnist"):
    """MNIST, handwritten digits of 28 x 28 = 784 pixels (x/255 - 0.1307)/0.3081 (flame section V; LeCun et al. 1998).

    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Files: train-images-idx3-ubyte.gz and so on.
    Source: FLAME, 2023, arXiv 2311.06756.
    """

    # Scaled by constants that are known without the data.
    supports = Supports.EVERYTHING

    scale = (0.1307, 0.3081)


class Fmnist(IdxImages, tag="fmnist"):
    """Fashion-MNIST, clothes of 28 x 28 = 784 pixels (x/255 - 0.2860)/0.3530 (flame section V; Xiao et al. 2017).

    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Files: train-images-idx3-ubyte.gz and so on.
    Sources: FLAME, 2023, arXiv 2311.06756; Xiao, Rasul and Vollgraf, Fashion-MNIST, 2017, arXiv 1708.07747.
    """

    # Scaled by constants that are known without the data.
    supports = Supports.EVERYTHING

    scale = (0.2860, 0.3530)


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


class MedicalMnist(ImageSet, tag="medical-mnist"):
    """Medical MNIST, 58,954 images of 64 x 64 pixels (x/255 - 0.5)/0.5 in six classes (flame section V; Kaggle).

    Each class is a folder of JPEG or PNG images; classes are numbered in the alphabetical order of the folders. A row
    of X is an image (3, 64, 64) in row-major order, 12,288 features. A rank opens the images of its own clients only.
    Default partition: two shards of one class each per client; 80/20 for training and testing at each (errata, FLAME).
    Source: FLAME, 2023, arXiv 2311.06756.
    """

    # Divided by a constant.
    supports = Supports.EVERYTHING
    options = supporting("colour", "size")

    colour: Annotated[bool, Meta(description="true: three channels, as the CNN of flame expects; false: one, grey")] = (
        True
    )
    size: Annotated[int, Meta(ge=1, le=1024, description="side in pixels; images of another size are resized")] = 64

    def locate(self) -> list[Path]:
        return find_files("medical-mnist")

    def check(self) -> None:
        super().check()
        if find_spec("PIL") is None:
            raise UserError(NO_PILLOW)

    def load(self, seed: int, dtype: str) -> Dataset:
        (root,) = self.locate()
        with reading(root, "the data set medical-mnist"):
            paths, y = find_images(root)
        if not paths:
            raise UserError(
                f"{root} has no class folders with .jpeg, .jpg or .png images: "
                "it should contain AbdomenCT, BreastMRI, CXR, ChestCT, Hand, HeadCT"
            )
        return self.deal(FolderImages(paths, self.size, self.colour), y, seed, dtype, str(root))


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
