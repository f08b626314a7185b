"""The report as HTML: contents, anchors, tables to sort."""

import re
import sys

import pytest

from benchmarks.report import link
from benchmarks.webpage import webpage

pytest.importorskip("markdown_it")
PAGE = """# Report

[table](#fedgia-fedgiatable4)

## FedGiA: fedgia/table4

### Example V.1

| a | b |
|---|---|
| x | 2 |

### Example V.1

## FLAME: flame/table2
"""
GIA = [("FedGiA", "", ""), ("", "fedgia-fedgiatable4", "table4")]
CONTENTS = [("", "report", "Report"), *GIA, ("FLAME", "", ""), ("", "flame-flametable2", "table2")]


def test_the_contents_lead_to_every_benchmark_and_a_link_survives_any_folder(tmp_path, monkeypatch):
    text = webpage(PAGE)
    ids = re.findall(r'<h\d id="([^"]+)"', text)
    assert ids == ["report", "fedgia-fedgiatable4", "example-v1", "example-v1-1", "flame-flametable2"]
    contents = re.search("<nav.*?</nav>", text, re.DOTALL).group()
    assert re.findall('<b>(.*?)</b>|href="#(.*?)">(.*?)<', contents) == CONTENTS
    made = webpage(link("file", tmp_path / "a b (c)" / "x.toml", tmp_path / "my results (new)"))
    assert '<a href="../a%20b%20%28c%29/x.toml">file</a>' in made
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    assert webpage(PAGE) is None
