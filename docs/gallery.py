"""Draw the small pictures of docs/gallery.md: run its blocks in an empty folder, and shrink what they drew.

python docs/gallery.py
"""

import re
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
WIDTH = 360  # pixels
COLOURS = 256


def main() -> None:
    """Write docs/pictures/gallery/NAME.png for every NAME.png that a block of the page draws."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", (DOCS / "gallery.md").read_text("utf-8"), re.M | re.S)
    target = DOCS / "pictures" / "gallery"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks:
            subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, check=True)
        for path in sorted(Path(folder).glob("*.png")):
            picture = Image.open(path).convert("RGB")
            small = picture.resize((WIDTH, round(WIDTH * picture.height / picture.width)), Image.Resampling.LANCZOS)
            small.quantize(COLOURS).save(target / path.name, optimize=True)


if __name__ == "__main__":
    main()
