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
from mpifed.report.interactive import ALL_POINTS, MOST, make_page
from tests.helpers.figures import grid
from tests.helpers.recorded_runs import recorded

pytest.importorskip("plotly")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NAN = float("nan")


def numbers(stored):
    return np.frombuffer(base64.b64decode(stored["bdata"]), "<f4").tolist()


def lines(page):
    """The lines that the page first shows: name, x and y."""
    shown = [trace for trace in page.figure["data"] if trace["visible"]]
    return [(trace["name"], numbers(trace["x"]), numbers(trace["y"])) for trace in shown]


def menus(page):
    """The entries of each menu: y, x and, where there is something to choose, runs."""
    found = [menu["buttons"] for menu in page.figure["layout"]["updatemenus"]]
    return [{button["label"]: button["args"] for button in buttons} for buttons in found]


def test_a_page_begins_with_means_as_pictures_do_and_has_menus_for_axes_and_runs():
    page = make_page(grid(2.0, 1.0))
    assert lines(page) == [("k₀ = 5", [0, 1, 2], [8, 4, 2.5]), ("k₀ = 10", [0, 1, 2], [8, 4, 1.5])]
    y, x, runs = menus(page)
    columns = ["objective", "f − least f found", "‖∇f‖²"]
    assert {label.removesuffix(", logarithmic") for label in y} == {f"y: {column}" for column in columns}
    titles = ["round", "exchanges", "up + down (kB)", "time (s)"]
    assert list(x) == [f"x: {title}{scale}" for title in titles for scale in ("", ", logarithmic")]
    means, every = [True, False, False] * 2, [False, True, True] * 2
    assert {label: change["visible"] for label, (change,) in runs.items()} == {
        "show: means over seeds": means,
        "show: every run": every,
        "show: k₀ = 5": [True] + [False] * 5,
        "show: k₀ = 10": [False] * 3 + [True] + [False] * 2,
        "show: seed = 0": [False, True, False] * 2,
        "show: seed = 1": [False, False, True] * 2,
    }
    assert runs["show: every run"][0]["showlegend"] == [False, True, False] * 2
    change, look = x["x: up + down (kB)"]
    assert [numbers(values) for values in change["x"]] == [[0, 4, 8]] * 6
    assert (look["xaxis.type"], look["xaxis.title.text"]) == ("linear", "up + down (kB)")


def test_a_mean_is_geometric_on_a_logarithmic_axis_and_what_is_not_positive_stands_on_a_floor():
    runs = [recorded(seed=s, objective=(100.0, end)) for s, end in enumerate((0.01, 0.04))]
    page = make_page(runs)
    assert lines(page)[0][2] == pytest.approx([100, 0.02])
    assert page.figure["layout"]["yaxis"]["type"] == "log"
    change, _ = menus(page)[0]["y: objective"]
    assert numbers(change["y"][0]) == pytest.approx([100, 0.025])
    page = make_page([recorded(objective=(8.0, 1e-3, 0.0))], log="y")
    ((_, _, y),) = lines(page)
    assert y[:2] == pytest.approx([8, 1e-3])
    assert 0 < y[2] < 1e-3
    (trace,) = page.figure["data"]
    assert numbers(trace["customdata"]) == pytest.approx([8, 1e-3, 0])
    assert "%{customdata:" in trace["hovertemplate"], "the pointer shows the number, not the floor"
    assert "%{y:" in menus(page)[0]["y: objective"][0]["hovertemplate"][0]
    assert [note["text"] for note in page.figure["layout"]["annotations"] if note["visible"]] == ["≤ 0"]


@pytest.mark.parametrize(("status", "ends"), [("finished", [8, 5, 4]), ("failed", [8, 5, 2])])
def test_a_mean_keeps_the_last_value_of_a_run_that_finished_alone(status, ends):
    runs = [recorded(objective=(8.0, 4.0, 2.0)), recorded(seed=1, objective=(8.0, 6.0), status=status)]
    assert lines(make_page(runs, everything=True))[0][2] == ends


def test_a_mean_begins_where_all_runs_have_begun():
    runs = [recorded(seed=s, columns={"accuracy": (first, 0.5, 0.5)}) for s, first in enumerate((NAN, 0.1))]
    assert np.isnan(lines(make_page(runs, y=["accuracy"]))[0][2]).tolist() == [True, False, False]


def test_names_unfinished_runs_and_settings_are_as_in_pictures():
    _, _, runs = menus(make_page(grid(2.0, 1.0), rename=["k0=steps"]))
    assert "show: steps = 5" in runs
    died = [*grid(2.0, 1.0), recorded(k0=99, status="failed")]
    for everything, title, count in ((False, "without 1 run that did not finish", 2), (True, "with 1 run that did", 3)):
        page = make_page(died, everything=everything)
        assert title in page.heading
        assert len(lines(page)) == count
    page = make_page([recorded(), recorded(name="scaffold")])
    colours = {trace["name"]: trace["line"]["color"] for trace in page.figure["data"]}
    assert colours == {title: palette.method_style(title).colour for title in ("FedGiA", "SCAFFOLD")}
    (trace,) = make_page([recorded()]).figure["data"]
    assert trace["text"].startswith("in memory: finished<br>")
    assert "algorithm = fedgia, algorithm.k0 = 5" in trace["text"].replace("<br>\u00a0\u00a0\u00a0\u00a0", " ")
    assert trace["text"].endswith("<br>seed = 0")


def test_the_first_axes_are_those_asked_for_and_a_wrong_one_is_told():
    page = make_page([recorded()], x="seconds", y=["grad_norm_sq"], log="x")
    axes = [page.figure["layout"][axis] for axis in ("xaxis", "yaxis")]
    assert [(axis["title"]["text"], axis["type"]) for axis in axes] == [("time (s)", "log"), ("‖∇f‖²", "linear")]
    with pytest.raises(UserError, match="unknown column 'objectve'; did you mean 'objective'"):
        make_page([recorded()], y=["objectve"])


def test_the_file_loads_nothing_from_elsewhere_and_obeys_no_text_of_a_run():
    run = recorded(config={"data": {"path": "</script><!--<script> <b>%{x}&amp;.h5"}})
    page = make_page([run, recorded()], title="a <!--<script> title")
    text = page.to_html()
    library = max(re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL), key=len)
    shell = text.replace(library, "")
    assert len(library) > 1_000_000
    assert not re.search(r"https?://|src=|<link|@import|url\(|<!--", shell)
    assert len(re.findall("<script", shell)) == len(re.findall("</script", shell))
    assert "<p>a &lt;!--&lt;script&gt; title</p>" in shell
    (text,) = (trace["text"] for trace in page.figure["data"] if "script" in trace["text"])
    assert "&lt;b&gt;&#37;{x}&amp;amp;.h5" in text.replace("<br>\u00a0\u00a0\u00a0\u00a0", "")
    assert "<b>" not in text
    assert '<meta name="viewport"' in shell


def long(rounds, seed=0):
    """A run of many rounds, f = 1, 1/2, 1/3 …"""
    run = recorded(seed=seed)
    run.rounds.update({name: np.resize(values, rounds) for name, values in run.rounds.items()})
    run.rounds.update(round=np.arange(rounds), objective=1.0 / np.arange(1, rounds + 1))
    return run


def test_long_runs_are_thinned_and_rounds_that_were_not_evaluated_take_no_room():
    page = make_page([long(3000)])
    ((_, shown, y),) = lines(page)
    assert (page.shown, page.rounds) == (len(shown), 3000)
    assert MOST * 0.6 < len(shown) <= MOST
    assert shown[:20] == list(range(20))
    assert (shown[-1], y[-1]) == (2999, pytest.approx(1 / 3000))
    ((_, shown, _),) = lines(
        make_page([recorded(objective=(8.0, NAN, 2.0), columns={"grad_norm_sq": (1.0, NAN, 0.1)})])
    )
    assert shown == [0, 2]
    many = make_page([long(200, seed) for seed in range(400)])
    assert ALL_POINTS // 400 * 0.6 < many.shown <= ALL_POINTS // 400


def test_the_command_writes_a_page_or_says_what_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recorded("a.h5")
    for words, name in ((["--html"], "page.html"), (["-o", "runs.html"], "runs.html")):
        assert main(["plot", "a.h5", *words]) == 0
        assert capsys.readouterr().out.startswith(f"written to {name} (4.")
        assert main(["plot", "a.h5", *words]) == 2
        assert "exists; say --force" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(UserError, match=re.escape('an interactive page needs plotly: pip install "mpifed[plot]"')):
        make_page([recorded()])


STEPS = """
<script>
const seen = [];
const picture = document.querySelector(".plotly-graph-div");
const state = () => {
  const shown = picture._fullData.filter((trace) => trace.visible === true);
  const axes = [picture._fullLayout.xaxis, picture._fullLayout.yaxis].map((axis) => `${axis.title.text} ${axis.type}`);
  seen.push([shown.length, ...axes, shown.map((trace) => Number(trace.y.at(-1).toPrecision(4)))]);
};
const press = async (label) => {
  const buttons = picture._fullLayout.updatemenus.flatMap((menu) => menu.buttons);
  const button = buttons.find((one) => one.label === label);
  await Plotly[button.method](picture, ...button.args);
};
(async () => {
  state();
  await press("x: up + down (kB)");
  await press("y: ‖∇f‖², logarithmic");
  state();
  await press("show: every run");
  state();
  await press("show: k₀ = 5");
  state();
  Plotly.Fx.hover(picture, [{curveNumber: 0, pointNumber: 1}]);
  seen.push(Array.from(document.querySelectorAll(".hovertext tspan.line"), (line) => line.textContent));
  document.body.textContent = "SEEN" + JSON.stringify(seen) + "END";
})();
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="needs Chromium")
def test_in_a_browser_axes_are_switched_and_runs_switched_off(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(make_page(grid(2.0, 1.0)).to_html().replace("</body>", STEPS + "</body>"), "utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    words += ["--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND"]
    words += [f"--user-data-dir={tmp_path / 'user'}", "--virtual-time-budget=5000", "--dump-dom", path.as_uri()]
    done = subprocess.run([BROWSER, *words], capture_output=True, text=True, timeout=120, check=True)
    *seen, hover = json.loads(re.search("SEEN(.*)END", done.stdout).group(1))
    assert seen == [
        [2, "round linear", "objective linear", [2.5, 1.5]],
        [2, "up + down (kB) linear", "‖∇f‖² log", [0.01, 0.01]],
        [4, "up + down (kB) linear", "‖∇f‖² log", [0.01] * 4],
        [1, "up + down (kB) linear", "‖∇f‖² log", [0.01]],
    ]
    assert hover[:4] == ["k₀ = 5", "up + down (kB): 4", "‖∇f‖²: 0.1", "mean of 2 runs"]
