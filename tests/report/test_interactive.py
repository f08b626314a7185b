"""The page to explore runs: what it contains, and what it does in a browser."""

import base64
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from mpifed.cli.main import main
from mpifed.core.errors import UserError
from mpifed.report import palette
from mpifed.report.interactive import MOST, POINTS, make_page
from tests.helpers.figures import grid
from tests.helpers.recorded_runs import recorded

pytest.importorskip("plotly")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def data(page):
    """What the page knows of the runs."""
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.text, re.DOTALL).group(1)
    assert "<" not in text, "the element of the data ends where it should, whatever is in it"
    return json.loads(text)


def numbers(text):
    return np.frombuffer(base64.b64decode(text), "<f4").tolist()


def test_the_page_has_every_run_with_its_columns_and_switches_for_its_settings_and_loads_nothing_from_elsewhere():
    page = make_page(grid(2.0, 1.0))
    shell = page.text.replace(re.search(r"<script>(/\*\*.*?)</script>", page.text, re.DOTALL).group(1), "")
    assert len(page.text) - len(shell) > 1_000_000  # plotly
    assert not re.search(r"https?://|src=|<link|@import|url\(", shell)
    assert "showSendToCloud: false" in shell
    found = data(page)
    assert [group["label"] for group in found["groups"]] == ["k₀ = 5", "k₀ = 10"]
    assert [run["group"] for run in found["runs"]] == [0, 0, 1, 1]
    run = found["runs"][1]["data"]
    assert numbers(run["objective"]) == [8, 4, 3]
    assert numbers(run["bytes"]) == [0, 4, 8]
    assert found["axes"]["bytes"]["title"] == "up + down (kB)"
    assert found["x"] == ["round", "exchanges", "bytes", "elapsed_seconds"]
    assert found["y"] == ["objective", "error", "grad_norm_sq"]
    found = data(make_page(grid(2.0, 1.0), rename=["k0=steps"]))
    assert [(one["name"], one["shown"]) for one in found["settings"]] == [("steps", ["5", "10"]), ("seed", ["0", "1"])]
    assert found["runs"][0]["settings"] == {"algorithm": "fedgia", "algorithm.k0": "5", "seed": "0"}
    runs = [*grid(2.0, 1.0), recorded(k0=99, status="failed")]
    for everything, title, count in ((False, "without 1 run that did not finish", 4), (True, "with 1 run that did", 5)):
        found = data(make_page(runs, everything=everything))
        assert title in found["title"]
        assert len(found["runs"]) == count
    found = data(make_page([recorded(), recorded(name="scaffold")]))
    colours = {group["label"]: group["colour"] for group in found["groups"]}
    assert colours == {
        "FedGiA": palette.method_style("fedgia").colour,
        "SCAFFOLD": palette.method_style("scaffold").colour,
    }


def test_the_pointer_shows_all_settings_and_the_first_axes_are_those_asked_for():
    (run,) = data(make_page([recorded()]))["runs"]
    assert "algorithm: fedgia, k0 = 5" in run["about"]
    assert "stop: gradient = 1e-09" in run["about"]
    assert run["about"][0] == "in memory: finished"
    found = data(make_page([recorded()], x="seconds", y=["grad_norm_sq"], log="x", title="a <!--<script> title"))
    assert (found["x"][0], found["y"][0]) == ("elapsed_seconds", "grad_norm_sq")
    assert (found["log"], found["title"]) == ({"x": True, "y": False}, "a <!--<script> title")
    with pytest.raises(UserError, match="unknown column 'objectve'; did you mean 'objective'"):
        make_page([recorded()], y=["objectve"])


def long(rounds, seed=0):
    """A run of many rounds, f = 1, 1/2, 1/3 …"""
    run = recorded(seed=seed)
    run.rounds.update({name: np.resize(values, rounds) for name, values in run.rounds.items()})
    run.rounds.update(round=np.arange(rounds), objective=1.0 / np.arange(1, rounds + 1))
    return run


def test_long_runs_are_thinned_and_rounds_that_were_not_evaluated_take_no_room():
    page = make_page([long(3000)])
    (run,) = data(page)["runs"]
    shown = numbers(run["data"]["round"])
    assert (page.shown, page.rounds) == (len(shown), 3000)
    assert MOST * 0.6 < len(shown) <= MOST
    assert shown[:20] == list(range(20))
    assert shown[-1] == 2999
    assert numbers(run["data"]["objective"])[-1] == pytest.approx(1 / 3000)
    gaps = {"grad_norm_sq": (1.0, float("nan"), 0.1)}
    (run,) = data(make_page([recorded(objective=(8.0, float("nan"), 2.0), columns=gaps)]))["runs"]
    assert numbers(run["data"]["round"]) == [0, 2]


@pytest.mark.slow
def test_rounds_of_many_runs_are_thinned_more():
    many = make_page([long(400, seed) for seed in range(200)])
    assert POINTS // 200 * 0.6 < many.shown <= POINTS // 200


def test_the_command_writes_a_page_or_says_what_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recorded("a.h5")
    for words, name in ((["--html"], "page.html"), (["-o", "runs.html"], "runs.html")):
        assert main(["plot", "a.h5", *words]) == 0
        assert capsys.readouterr().out.startswith(f"written to {name} (4.")
        assert main(["plot", "a.h5", *words]) == 2
        assert "exists; say --force" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(UserError, match=re.escape('an interactive page needs plotly: pip install "mpifed[plot]"')):
        make_page([recorded()])


STEPS = """
<script>
const seen = [];
const state = () => {
  const picture = document.getElementById("picture");
  const shown = picture.data.filter((trace) => trace.visible === true);
  const axes = [picture.layout.xaxis, picture.layout.yaxis].map((axis) => `${axis.title.text} ${axis.type}`);
  seen.push([shown.length, ...axes, shown.map((trace) => Number(trace.y.at(-1).toPrecision(4)))]);
};
const set = (id, value, part = "value") => { element(id)[part] = value; element(id).onchange(); };
state();
set("x", "bytes");
set("y", "grad_norm_sq");
set("log-y", true, "checked");
state();
set("mean", false, "checked");
state();
set("algorithm.k0=10", false, "checked");
state();
set("mean", true, "checked");
set("y", "objective");
set("algorithm.k0=10", true, "checked");
hidden.add(0);
draw();
state();
document.body.textContent = "SEEN" + JSON.stringify(seen) + "END";
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="needs Chromium")
def test_in_a_browser_axes_are_switched_and_runs_switched_off(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(make_page(grid(2.0, 1.0)).text.replace("</body>", STEPS + "</body>"), "utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    words += ["--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND"]
    words += [f"--user-data-dir={tmp_path / 'user'}", "--virtual-time-budget=5000", "--dump-dom", path.as_uri()]
    done = subprocess.run([BROWSER, *words], capture_output=True, text=True, timeout=120, check=True)
    seen = json.loads(re.search("SEEN(.*)END", done.stdout).group(1))
    assert seen == [
        [2, "round linear", "objective linear", [2.5, 1.5]],
        [2, "up + down (kB) linear", "‖∇f‖² log", [0.01, 0.01]],
        [4, "up + down (kB) linear", "‖∇f‖² log", [0.01] * 4],
        [2, "up + down (kB) linear", "‖∇f‖² log", [0.01] * 2],
        [1, "up + down (kB) linear", "objective linear", [1.5]],
    ]
