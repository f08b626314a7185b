"""Files that nobody should have to trust: truncated, damaged, contradictory, or made to exhaust whoever reads them."""

import bz2
import gzip
import io
import os
import zipfile

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from tests.helpers.data_files import csr

RNG = np.random.default_rng(0)
X, Y, SIZES = RNG.normal(size=(20, 4)), RNG.integers(0, 2, 20).astype(float), np.array([5, 7, 8])
GOOD = {"X": X, "y": Y, "sizes": SIZES}
TEST = {"X_test": X, "y_test": Y, "sizes_test": SIZES}
CSR = sp.csr_array(X)
SPARSE = {**csr("X", X), "y": Y, "sizes": SIZES}
SVM = b"".join(b"%d 1:%.3f 3:%.3f\n" % (y, *x[:2]) for x, y in zip(X, Y, strict=True))
CSV = b"a,b,y\n" + b"".join(b"%.4f,%.4f,%d\n" % (*x[:2], y) for x, y in zip(X, Y, strict=True))
IMAGES = b"\0\0\x08\x03" + np.array([20, 2, 2], ">u4").tobytes() + RNG.bytes(80)
LABELS = b"\0\0\x08\x01" + np.array([20], ">u4").tobytes() + bytes(k % 4 for k in range(20))
RISING = np.arange(20, dtype="<i4").tobytes()
FORTY = np.arange(40, 81, 20, "<i4").tobytes()
HUGE = 10**15
TB = 10**12


def saved(save, *content, **options):
    """What a function writes to a file."""
    file = io.BytesIO()
    save(file, *content, **options)
    return file.getvalue()


def npz(**arrays):
    return saved(np.savez_compressed, **arrays)


def mat(packed=True, **arrays):
    return saved(scipy.io.savemat, arrays, do_compression=packed)


def h5(write):
    file = io.BytesIO()
    with h5py.File(file, "w") as out:
        write(out)
    return file.getvalue()


def h5_of(**arrays):
    return h5(lambda out: [out.create_dataset(name, data=array) for name, array in arrays.items()])


def zipped(members, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return file.getvalue()


def npy(head, content=b"", version=1):
    """An .npy member with any head."""
    head = head.encode() if isinstance(head, str) else head
    return b"\x93NUMPY" + bytes([version, 0]) + len(head).to_bytes(2 if version == 1 else 4, "little") + head + content


def head(descr="'<f8'", shape="(20, 4)", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def with_member(member, name="X.npy"):
    """A good NPZ file with one member replaced."""
    good = {f"{key}.npy": npy_of(value) for key, value in GOOD.items()}
    return zipped(good | {name: member})


def shaped(shape, **options):
    """A good NPZ file with a member of 640 bytes that says this shape."""
    return with_member(npy(head(shape=str(shape), **options), bytes(640)))


def npy_of(array, pickled=False):
    return saved(np.save, array, allow_pickle=pickled)


def pickled(shape):
    """An .npy member of traps."""
    return npy_of(np.full(shape, Trap(), object), True)


def inflated(archive):
    """An archive whose first member is said to unpack to 4 GB."""
    place = archive.index(b"PK\x01\x02") + 24
    return archive[:place] + (4 * 10**9).to_bytes(4, "little") + archive[place + 4 :]


class Trap:
    """What would run if anybody unpickled it."""

    def __reduce__(self):
        return os.mkdir, ("unpickled",)


ARRAYS = {  # name -> (arrays beside or in place of the good ones, what is said of them)
    "text": ({"X": np.full((20, 4), b"cat")}, "X of .* has the type"),
    "complex": ({"X": X.astype(complex)}, "X of .* has the type complex128: it must be an array of real numbers"),
    "record": ({"X": np.zeros((20, 4), [("a", "f8"), ("b", "i4")])}, "X of .* has the type"),
    "cube": ({"X": np.zeros((20, 2, 2))}, r"X of .* has the shape \(20, 2, 2\): it must be \(d, n\)"),
    "flat": ({"X": np.zeros(20)}, r"X of .* has the shape \(20,\): it must be \(d, n\)"),
    "no-rows": ({"X": np.zeros((0, 4)), "y": np.zeros(0)}, r"X of .* has the shape \(0, 4\)"),
    "no-columns": ({"X": np.zeros((20, 0))}, r"X of .* has the shape \(20, 0\)"),
    "nan": ({"X": np.where(np.arange(80).reshape(20, 4) == 13, np.nan, X)}, "row 3 of X of .* is not finite"),
    "inf-y": ({"y": np.where(np.arange(20) == 7, -np.inf, Y)}, "row 7 of y of .* is not finite"),
    "short-y": ({"y": Y[:7]}, "y of .* has 7 entries, but X has 20 rows"),
    "wide-y": ({"y": np.zeros((4, 5))}, r"y of .* has the shape \(4, 5\)"),
    "text-y": ({"y": np.array([b"yes", b""] * 10)}, "a label of .* is an empty text"),
    "negative-sizes": ({"sizes": np.array([-5, 12, 13])}, "sizes of .* must be whole numbers, .* each at least 1"),
    "zero-sizes": ({"sizes": np.array([0, 10, 10])}, "sizes of .* must be whole numbers, .* each at least 1"),
    "nan-sizes": ({"sizes": np.array([np.nan, 20])}, "sizes of .* must be whole numbers"),
    "huge-sizes": ({"sizes": np.array([1e300, 20])}, "sizes of .* must be whole numbers"),
    "text-sizes": ({"sizes": np.array([b"20"])}, "sizes of .* has the type"),
    "wrapping-sizes": ({"sizes": np.array([2**62] * 4 + [20])}, "sizes of .* add up to 18446744073709551636"),
    "large-sizes": ({"sizes": np.array([2**64 - 1, 21], np.uint64)}, "sizes of .* must be whole numbers"),
    "small-sizes": ({"sizes": np.array([5, 7])}, "sizes of .* add up to 12, but X has 20 rows"),
    "test-alone": ({"X_test": X}, "has test samples but no sizes_test"),
    "test-sizes": (TEST | {"sizes_test": np.array([10, 10])}, "sizes_test of .* has 2 entries, but sizes"),
    "test-narrow": (TEST | {"X_test": X[:, :2]}, "X_test of .* has 2 columns, but X has 4"),
    "test-nan": (TEST | {"y_test": Y * np.nan}, "row 0 of y_test of .* is not finite"),
}
MATRICES = {  # the same of CSR
    "columns-beyond": ({"X_indices": CSR.indices + 3}, "cannot be read as .*indices must be < 4"),
    "columns-half": ({"X_indices": CSR.indices + 0.5}, "X_indices of .* the type float64: it must be an integer type"),
    "columns-short": ({"X_indices": CSR.indices[:9]}, r"X_indices of .* has the shape \(9,\), but X_indptr ends at 80"),
    "falling": ({"X_indptr": CSR.indptr[::-1]}, "X_indptr of .* 21 whole numbers that start at 0 and never decrease"),
    "dip": ({"X_indptr": np.where(np.arange(21) == 9, 1, CSR.indptr)}, "X_indptr of .* never decrease"),
    "fractions": ({"X_indptr": CSR.indptr / 3}, "X_indptr of .* must be 21 whole numbers"),
    "far-pointers": ({"X_indptr": CSR.indptr.astype("u8") * 2**58}, "X_indptr of .* must be|X_data of .* the shape"),
    "endless-rows": ({"X_shape": np.array([2.0**62, 4])}, "X_indptr of .* must be 4611686018427387905 whole numbers"),
    "endless-columns": ({"X_shape": np.array([20, HUGE])}, "X of .* has 1,000,000,000,000,000 columns: .* would take"),
    "negative-shape": ({"X_shape": np.array([20, -4])}, "X_shape of .* must be two whole numbers"),
    "nan-shape": ({"X_shape": np.array([np.nan, 4])}, "X_shape of .* must be two whole numbers"),
    "text-data": ({"X_data": np.array([b"1"] * 80)}, "X_data of .* has the type"),
    "nan-data": ({"X_data": CSR.data * np.nan}, "row 0 of X of .* is not finite"),
}


def linked(name, value):
    """An HDF5 file with a link or another value in place of a dataset, or what a function makes there."""

    def write(out):
        for key, good in GOOD.items():
            out[key if key != name else "other"] = good
        if callable(value):
            value(out, name)
        else:
            out[name] = value

    return h5(write)


def chunked(name, shape, dtype="f8", **options):
    """An HDF5 file in which one dataset declares what nobody wrote."""
    return linked(name, lambda out, name: out.create_dataset(name, shape, dtype, **options))


def virtual(out, name):
    layout = h5py.VirtualLayout((20, 4), "f8")
    layout[:] = h5py.VirtualSource("/dev/zero", "X", (20, 4))
    out.create_virtual_dataset(name, layout)


def outside(out, name):
    out.create_dataset(name, (20, 4), "f8", external=[("/dev/zero", 0, h5py.h5f.UNLIMITED)])


def odd_type(out, name):
    h5py.h5d.create(out.id, name.encode(), h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((20, 4)))


MAT, CSR_MAT = mat(False, X=X, y=Y), mat(False, X=CSR, y=Y)
NINE = b"\t\0\0\0\x80\x02\0\0"  # the type and the bytes of X
MORE = {  # file -> (content, what is said of it)
    "endless.h5": (chunked("X", (20, HUGE), chunks=(1, 1024)), "X of .* declares 160,000,000,000,000,000 bytes, but"),
    "endless-y.h5": (chunked("y", (HUGE,), chunks=(1024,)), "y of .* declares 8,000,000,000,000,000 bytes"),
    "endless-sizes.h5": (chunked("sizes", (TB,), chunks=(1024,)), "sizes of .* declares 8,000,000,000,000 bytes"),
    "zeros.h5": (chunked("X", (TB, 1), compression="gzip"), "X of .* declares 8,000,000,000,000 bytes"),
    "unwritten.h5": (chunked("X", (10**6, 10**3)), "X of .* declares 8,000,000,000 bytes, but its 0 bytes in the file"),
    "soft.h5": (linked("X", h5py.SoftLink("/other")), "X of .* is a link"),
    "external.h5": (linked("X", h5py.ExternalLink("pipe", "/X")), "X of .* is a link"),
    "virtual.h5": (linked("X", virtual), "X of .* lies in other files"),
    "outside.h5": (linked("X", outside), "X of .* lies in other files"),
    "group.h5": (linked("X", lambda out, name: out.create_group(name)), "has no X: it needs X, or X_data"),
    "null.h5": (linked("X", h5py.Empty("f8")), "has no X"),
    "odd.h5": (linked("y", odd_type), "y of .* has a type that numpy does not know"),
    "empty.h5": (h5(lambda out: None), "has no X: it needs X, or X_data, X_indices, X_indptr and X_shape"),
    "vlen.h5": (chunked("y", (20,), dtype=h5py.vlen_dtype("f8")), "y of .* the type object"),
    "words.h5": (linked("y", ["a", ""] * 10), "a label of .*words.h5 is an empty text"),
    "endless.npz": (shaped((HUGE, 4)), r"X of .* the shape \(10{15}, 4\) of float64, 32,000,.* bytes, but holds 640"),
    "overflow.npz": (shaped((2**62, 2**62)), "X of .* declares the shape"),
    "negative.npz": (shaped((-20, -4)), r"X of .* declares the shape \(-20, -4\)"),
    "columns-first.npz": (shaped((HUGE, 4), order="True"), "X of .* declares the shape"),
    "pickle.npz": (with_member(pickled((1, 1))), "X of .* has the type object: .* never loaded"),
    "pickle-y.npz": (with_member(pickled(20), "y.npy"), "y of .* never loaded"),
    "bare-pickle.npz": (b"\x80\x04\x95\x0b\0\0\0\0\0\0\0\x8c\x07builtin\x94.", "cannot be read as NPZ"),
    "dates.npz": (with_member(npy_of(np.zeros((20, 4), "M8[s]"))), r"X of .* has the type datetime64\[s\]"),
    "brackets.npz": (with_member(npy("(" * 5000)), "cannot be read as NPZ"),
    "open.npz": (with_member(npy(head()[:40])), "cannot be read as NPZ"),
    "unhashable.npz": (with_member(npy("{[]: 1}")), "cannot be read as NPZ"),
    "code.npz": (with_member(npy("__import__('os').mkdir('evaluated')")), "cannot be read as NPZ"),
    "odd-type.npz": (shaped((20, 4), descr="'<z9'"), "cannot be read as NPZ"),
    "long-head.npz": (with_member(npy(b" " * 10**6, version=2)), "cannot be read as NPZ"),
    "no-magic.npz": (with_member(b"NUMPY"), "cannot be read as NPZ"),
    "no-member.npz": (zipped({"y.npy": npy_of(Y)}), "has no X"),
    "empty.npz": (zipped({}), "has no X"),
    "up.npz": (zipped({"../../X.npy": npy_of(X), "y.npy": npy_of(Y)}), "has no X"),
    "bomb.npz": (inflated(npz(X=X, y=Y)), "X of .*bomb.npz declares 4,000,000,000 bytes, but its"),
    "long-line.csv.gz": (gzip.compress(b"1" * (1 << 20)) * 65, "table: it has a line of more than 67,108,864 bytes"),
    "bomb.csv.bz2": (bz2.compress(b"0,0\n" * (1 << 17)) * 40, "is not a table: it unpacks to over 500 times its"),
    "bomb.svm.gz": (gzip.compress(b"0 1:0\n" * (1 << 20)) * 3, "is not a table: it unpacks to over 500 times its"),
    "binary.csv": (RNG.bytes(3000), "binary.csv"),
    "nul.csv": (
        CSV.replace(b",", b"\0,", 9),
        r"nul.csv, line 2: '.*\\x00' in .* has characters that cannot be printed",
    ),
    "words.csv": (b"a,b,y\n1,2,0\n1,two,1\n", "words.csv, line 3: 'two' in the column 'b' is not a number"),
    "ragged.csv": (CSV[:-4], "ragged.csv, line 21: 2 columns, but the first line has 3"),
    "nan.csv": (CSV + b"1,2,0\n" * 200 + b"nan,1,0\n", "nan.csv has 1 missing cell: .* in the column 'a' in line 222"),
    "empty.csv": (b"", "empty.csv"),
    "utf16.csv": ("\ufeffa,b,y\n1,2,0\n".encode("utf-16"), "utf16.csv"),
    "binary.svm": (RNG.bytes(3000), "binary.svm, line 1: .* is not of the form"),
    "endless.svm": (b"1 99999999999999:1\n0 1:1\n", "X of .*endless.svm has 99,999,999,999,999 columns: .* would take"),
    "below.svm": (b"1 -3:1\n", "below.svm has the index -3: indices count from 1"),
    "beyond.svm": (b"1 99999999999999999999999:1\n", "beyond.svm, line 1: .* is not of the form"),
    "broken.svm": (SVM[:-6] + b":\n", "broken.svm, line 20: .* is not of the form"),
    "nan.svm": (SVM + b"1 1:1\n" * 200 + b"0 2:nan\n", "row 220 of X of .*nan.svm is not finite"),
    "empty.svm": (b"", r"X of .*empty.svm has the shape \(0, 0\)"),
    "cells.mat": (mat(X=np.array([[1, "a"]], object), y=Y), "X of .*cells.mat has the type object"),
    "struct.mat": (mat(X={"a": 1}, y=Y), "X of .*struct.mat has the type object"),
    "words.mat": (mat(X="word", y=Y), "X of .*words.mat has the type object"),
    "complex.mat": (mat(X=X * 1j, y=Y), "X of .*complex.mat has the type complex128"),
    # scipy's reader ends the process at this one, and at dip.mat
    "reserved.mat": (MAT.replace(NINE, b"\x08" + NINE[1:]), "reserved.mat cannot be read as MATLAB.*numbers of type 8"),
    "rows.mat": (CSR_MAT.replace(RISING, RISING[:4] + b"\xff" * 4 + RISING[8:], 1), "cannot be read as MATLAB.*ind"),
    "dip.mat": (CSR_MAT.replace(FORTY, bytes(12)), "read as MATLAB.*column pointers of X must be 5 numbers"),
    "wide.mat": (MAT.replace(b"\x14\0\0\0\x04\0\0\0", b"\xff\xff\xff\x7f" * 2), "declares 36,893,488,113,059,364,872"),
    "none.mat": (mat(a=Y), "none.mat has no X"),
    "no.mat": (b"MATLAB" + bytes(600), "no.mat cannot be read as MATLAB"),
    "odd.xlsx": (b"PK", r"odd.xlsx\" has an unknown suffix: it must be one of .h5"),
    "packed.npz.gz": (gzip.compress(npz(**GOOD)), "unknown suffix"),
}
WHOLE = {
    "h5": h5_of(**GOOD),
    "npz": npz(**GOOD),
    "mat": mat(X=X, y=Y),
    "csv.gz": gzip.compress(CSV),
    "svm.bz2": bz2.compress(SVM),
}
CUT = {f"cut-{k}.{suffix}": content[: len(content) * k // 8] for suffix, content in WHOLE.items() for k in range(8)}


def data_files():
    """Name -> (content, what is said of it) of every hostile data file."""
    found = MORE | {
        name: (content, f"{name} cannot be read as|X of .*{name} declares|{name} has no")
        for name, content in CUT.items()
        if content or not name.endswith(("csv.gz", "svm.bz2"))
    }
    for kind, table, rest in (("a", ARRAYS, GOOD), ("s", MATRICES, SPARSE)):
        for name, (arrays, told) in table.items():
            found[f"{kind}-{name}.npz"] = (npz(**rest | arrays), told)
            if name in ("nan", "negative-sizes", "complex", "columns-beyond", "falling", "wrapping-sizes", "record"):
                found[f"{kind}-{name}.h5"] = (h5_of(**rest | arrays), told)
    return found
