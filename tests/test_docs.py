"""The pages: links lead somewhere, what is written from the code is up to date, commands and studies are valid."""

import ast
import json
import re
import runpy
import shlex
import tomllib
from functools import cache

import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.cli import describe
from mpifed.cli import main as cli
from mpifed.data.partition import Partition
from mpifed.experiment import config
from mpifed.features.attack.attacks import Attack
from mpifed.features.robust.means import RobustMean
from mpifed.federation.participation.selection import Selection
from mpifed.sweeps.search import read_methods
from tests.helpers.commands import ROOT
from tests.test_house import ARROWS

DOCS = ROOT / "docs"
STUDIES = DOCS / "studies"
REFERENCE = DOCS / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *STUDIES.glob("*.md")])
PAPERS = ("fedadmm", "fedgia", "fedepm", "feddcd", "flame")
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]*)?\)")
BUILD = runpy.run_path(str(DOCS / "build.py"))
PROGRAMS = ("outcomes", "rows", "agreement", "arena", *(f"tables-{paper}" for paper in PAPERS))  # programs write them
GENERATED = {DOCS / "results.md", *(STUDIES / f"{name}.md" for name in PROGRAMS)}
WORDS = 40_000  # by hand, in README and docs
LONGEST = 1_500  # of a page
page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@cache
def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@cache
def names(path):
    """The functions and classes of a file, methods as Class.method."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            inner = [part.name for part in getattr(node, "body", []) if isinstance(part, ast.FunctionDef)]
            found |= {node.name, *(f"{node.name}.{name}" for name in inner)}
    return found


def test_links_lead_somewhere():
    """Every link that leads to a file leads to one of the repository, and its anchor to a heading there."""
    for page in [*PAGES, *REFERENCE.rglob("*.md")]:
        for _, target, anchor in LINK.findall(page.read_text("utf-8")):
            if not target.startswith(("http://", "https://")):
                file = (page.parent / target).resolve() if target else page
                assert file.exists(), f"{page.name}: {target}"
                assert file.is_relative_to(ROOT)
                assert not anchor or anchor[1:] in anchors(file), f"{page.name}: {target}{anchor}"


@pytest.mark.parametrize("folder", [STUDIES, REFERENCE], ids=lambda path: path.name)
def test_the_contents_of_a_folder_lead_to_every_page(folder):
    linked = {(folder / target).resolve() for _, target, _ in LINK.findall((folder / "index.md").read_text("utf-8"))}
    assert set(folder.rglob("*.md")) - linked == {folder / "index.md"}


def test_no_cell_of_a_table_is_longer_than_eighty_characters():
    """As it is read: the words of a link count, its target does not."""
    for page in [ROOT / "README.md", *DOCS.glob("*.md"), *STUDIES.glob("*.md")]:
        if page not in GENERATED:
            for line in re.findall(r"^\|.*$", prose(page), re.M):
                cells = re.split(r"(?<!\\)\|", line.replace("`", ""))
                assert max(len(cell.strip()) for cell in cells) <= 80, f"{page.name}: {line}"


def test_pages_by_hand_are_short():
    pages = {ROOT / "README.md", *DOCS.glob("*.md"), *STUDIES.glob("*.md")} - GENERATED
    words = {page.relative_to(ROOT): count(page) for page in pages}
    assert sum(words.values()) <= WORDS
    assert {name: number for name, number in words.items() if number > LONGEST} == {}


def test_pages_say_on_top_for_whom_they_are():
    for page in {*DOCS.glob("*.md"), *STUDIES.glob("*.md")} - GENERATED:
        _, _, first, *_ = page.read_text("utf-8").split("\n")
        assert re.match(r"\*For .+", first), f"{page.name} does not begin with *For …*"


def count(page):
    """Words with a letter, outside of blocks of code and of tables; code in a line is one word, a link its text."""
    text = re.sub(r"^\|.*$|`[^`\n]+`", "code", prose(page), flags=re.M)
    return len([word for word in text.split() if re.search(r"[^\W\d_]", word)])


def prose(page):
    """A page without its blocks of code, comments and targets of links."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", page.read_text("utf-8"), flags=re.S | re.M)
    return LINK.sub(r"\1", text)


def test_the_studies_name_as_many_seeds_as_the_report_takes():
    for line in (STUDIES / "index.md").read_text("utf-8").splitlines():
        *_, named, seeds, _ = line.split("|") if re.search(r"[a-z] \| \d+ \|$", line) else ("", "", "")
        for name in filter(None, named.strip().split(", ")):
            table = tomllib.loads((ROOT / "benchmarks" / "beyond" / f"{name}.toml").read_text("utf-8"))
            assert table["report"] == int(seeds), name


@pytest.mark.parametrize("paper", PAPERS)
def test_functions_that_a_page_names_are_there(paper):
    links = LINK.findall((STUDIES / f"{paper}.md").read_text("utf-8"))
    code = [(text.strip("`"), (STUDIES / target).resolve()) for text, target, _ in links if target.endswith(".py")]
    assert len(code) > 8
    for name, file in code:
        assert name in names(file), f"{name} is not in {file.name}"


def test_what_is_written_from_the_code_is_up_to_date():
    pages = BUILD["pages"]()
    others = {
        "results.md",
        "studies/outcomes.md",
        "studies/rows.md",
        *(f"studies/tables-{paper}.md" for paper in PAPERS),
    }
    assert {path.relative_to(DOCS).as_posix() for path in REFERENCE.rglob("*.md")} | others == pages.keys()
    old = [name for name, text in pages.items() if (DOCS / name).read_text("utf-8") != text]
    assert not old, f"{old} are old: run python docs/build.py"


def test_every_part_of_the_papers_is_about_a_file_that_is_there_or_says_why_not():
    told = tomllib.loads((DOCS / "coverage.toml").read_text("utf-8"))
    assert told.keys() == set(PAPERS)
    for paper, parts in told.items():
        assert all(kind in {part.split()[0] for part in parts} for kind in ("Table", "Figure", "Theorem", "Lemma"))
        for part, one in parts.items():
            assert one.keys() <= {"by", "lacks"}, f"{paper}, {part}"
            assert any(one.values()), f"{paper}, {part}"
            for name in one.get("by", []):
                path = ROOT / (name if "/" in name else f"benchmarks/{paper}/{name}.toml")
                assert path.exists(), f"{paper}, {part}: {path}"


def test_the_page_of_rows_has_every_study():
    told = tomllib.loads((DOCS / "outcomes.toml").read_text("utf-8"))
    assert {*told["rows"]["page"], "index", "rows"} == {page.stem for page in STUDIES.glob("*.md")}
    assert not any("count" in paper for paper in told["paper"].values())


def test_pages_of_names_that_are_no_longer_there_are_removed(tmp_path):
    gone = tmp_path / "reference" / "algorithms" / "gone.md"
    gone.parent.mkdir(parents=True)
    gone.write_text("# Gone", "utf-8")
    BUILD["write"](tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == BUILD["pages"]().keys()


def test_every_algorithm_cites_its_paper_as_the_citation_file_does():
    """Title, year, number and the authors' family names; the reference links to each paper."""
    cited = pytest.importorskip("yaml").safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["references"]
    known = {(number_of(work["url"]), work["year"], work["title"]): work for work in cited}
    found = set()
    for name in Algorithm.choices:
        source = describe.find_paper(Algorithm.member(name, "algorithm"))
        parts = re.fullmatch(
            r".+, (?:Algorithms? [\d.]+(?: and [\d.]+)?|the method) of "
            r'(.+), "(.+)", (arXiv:\d{4}\.\d{4,5}|doi:\S+) \((\d{4})\)\.',
            source.citation,
        )
        authors, title, number, year = parts.groups()
        work = known[number, int(year), title]
        assert [author["family-names"] for author in work["authors"]] == re.sub(r"([A-Z]\. )+", "", authors).split(", ")
        own = ("doi", number.removeprefix("doi:")) if number.startswith("doi:") else ("other", number)
        assert work["identifiers"] == [dict(zip(("type", "value"), own, strict=True))]
        found.add((number, int(year), title))
        page = REFERENCE / "algorithms" / f"{name}.md"
        assert f"({work['url']})" in page.read_text("utf-8"), f"{page.name} does not link to {work['url']}"
    for name in Partition.choices:
        numbers = re.findall(r"arXiv[: ]\d{4}\.\d{5}", Partition.member(name, "name").__doc__ or "")
        assert {number.replace(" ", ":") for number in numbers} <= {number for number, _, _ in known}, name
    families = (Selection, Attack, RobustMean, Partition)
    documented = [family.member(name, "name").__doc__ or "" for family in families for name in family.choices]
    components = " ".join(" ".join([*documented, RobustMean.__doc__ or ""]).split())
    assert found <= known.keys()
    for number, year, title in known.keys() - found:
        assert f'"{title}", {number} ({year})' in components, f"CITATION.cff has {title}, which nothing cites"


def number_of(url):
    """arXiv:NUMBER or doi:NUMBER of a link."""
    return url.replace("https://arxiv.org/abs/", "arXiv:").replace("https://doi.org/", "doi:")


def test_every_method_has_a_row_in_the_table_of_all():
    proved = tomllib.loads((DOCS / "field.toml").read_text("utf-8"))
    assert all(row.keys() - {"gradients"} == {"convex", "nonconvex"} and all(row.values()) for row in proved.values())
    assert Algorithm.choices.keys() == proved.keys()
    lines = re.findall(r"^\| \[.+$", (REFERENCE / "methods.md").read_text("utf-8"), re.M)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    rows = {re.search(r"`([\w-]+)`", row[0])[1]: row for row in cells}
    assert list(rows) == list(Algorithm.choices)
    assert {len(cells) for cells in rows.values()} == {9}
    assert (rows["fedavg"][1], rows["scaffold"][1]) == ("1 vector each", "2 vectors each")
    assert rows["newton"][1] == "2 vectors; 1 matrix, 1 vector, 2 numbers"
    assert rows["pfedme"][2] == "`theta`: personal models; `z`: last upload"
    assert (rows["fedavg"][3], rows["accfeddcd"][3]) == ("5", "as many as it takes")
    assert (rows["accfeddcd"][4], rows["newton"][4]) == ("selected, twice", "all")
    assert '`noise = "clipped"`: each upload is ε-private' in rows["fedepm"][7]
    assert rows["gd"][8].startswith("[gd.py](../../mpifed/algorithms/gd.py), ")


def test_the_reference_has_every_name_and_contributing_every_room():
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M)
    assert sorted(table) == sorted(ARROWS.keys() - {"mpifed"})
    for kind, family in BUILD["KINDS"].items():
        if kind != "algorithms":  # a page each, whose titles are as in print
            text = (REFERENCE / f"{BUILD['page'](kind)}.md").read_text("utf-8")
            assert all(f"\n## {name}\n" in text for name in family.choices)
    assert {path.stem for path in (REFERENCE / "algorithms").glob("*.md")} == Algorithm.choices.keys()


def test_every_attribute_and_dataset_of_a_result_is_described(tmp_path):
    text = (DOCS / "results.md").read_text("utf-8")
    result = mpifed.run(
        {
            "data": {"name": "synthetic", "clients": 3, "least": 6, "most": 9},
            "algorithm": "flame",
            "rounds": 1,
            "record": {"personal": True},
            "system": {"speed": 1e4},
        },
        path=tmp_path / "out.h5",
    )
    described = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    assert set(result.attrs) <= described
    for group in (result.rounds, result.ranks, result.clients):
        assert set(group) <= described


@page
def test_experiment_files_in_the_pages_are_valid(page, tmp_path):
    for block in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.S):
        table = tomllib.loads(block)
        if "method" in table:
            (tmp_path / "methods.toml").write_text(block)
            assert len(read_methods(str(tmp_path / "methods.toml"), 4)) == len(table["method"])
        elif "project" not in table and ".py:" not in block:
            config.experiment(table)


@page
def test_programs_and_commands_in_the_pages_are_there(page):
    for program in re.findall(r"python -m (benchmarks(?:\.\w+)*)", page.read_text("utf-8")):
        path = ROOT.joinpath(*program.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), f"{page.name}: {program}"
    command = re.compile(r"^(?:mpirun -n \d+ )?python -m (benchmarks|mpifed) run (.*?)(?: +#.*)?$", re.M)
    for program, line in command.findall(page.read_text("utf-8").replace("\\\n", " ")):
        words = shlex.split(line)
        if program == "benchmarks":
            assert (ROOT / "benchmarks" / f"{words[0]}.toml").exists()
        elif not any(".py:" in word or word.endswith(".toml") for word in words):
            config.experiment(config.override({}, [word for word in words if "=" in word]))


def test_a_package_that_is_built_anew_replaces_the_wheel_that_is_installed():
    """Without --force-reinstall pip finds its requirement satisfied; its cache may have a build for another MPI."""
    found = [
        line for page in PAGES for line in re.findall(r"pip install [^`\n]*--no-binary.*", page.read_text("utf-8"))
    ]
    assert found
    for line in found:
        assert {"--force-reinstall", "--no-deps", "--no-cache-dir"} <= set(line.split()), line


@pytest.mark.parametrize("paper", ["fedadmm", "fedgia"])
def test_sweeps_in_the_pages_are_valid(paper, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^python -m mpifed (sweep .*)$", (STUDIES / f"{paper}.md").read_text("utf-8"), re.M)
    assert cli.main([*line.split(), "--dry-run"]) == 0
    assert re.search(r"^400 points", capsys.readouterr().out, re.M)


def test_settings_in_the_tables_of_the_pages_are_valid():
    for paper in PAPERS:
        for settings in re.findall(r"`((?:[\w.]+=\S+ ?)+)`", (STUDIES / f"{paper}.md").read_text("utf-8")):
            words = settings.split()
            base = [] if any(word.startswith("algorithm=") for word in words) else [f"algorithm={owner(words, paper)}"]
            config.experiment(config.override({}, base + words))


def test_every_setting_that_stands_for_a_word_of_another_simulator_is_valid():
    text = (DOCS / "first-hour.md").read_text("utf-8").partition("## From other simulators")[2]
    found = [cell.split() for cell in re.findall(r"`([\w.]+=[^`(]+)`", text)]
    assert len(found) > 20
    for words in found:
        key = words[0].partition("=")[0].split(".")
        base = ["algorithm=fedavg"] if key[0] == "algorithm" and len(key) > 1 else []
        base += ["data=digits"] if key[0] == "data" else []
        config.experiment(config.override({}, [*base, *words]))


def owner(words, paper):
    """The algorithm that has all options of these words, the paper's own first."""
    keys = {word.split("=")[0].split(".")[1] for word in words if word.startswith("algorithm.")}
    family = config.FAMILIES["algorithm"]
    return next(
        name for name in (paper, *family.choices) if keys <= set(family.member(name, "algorithm").__struct_fields__)
    )


def test_the_citation_is_complete():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {mpifed.__version__}\n" in text
    for key in ("cff-version", "message", "title", "authors"):
        assert re.search(rf"^{key}:", text, re.M)
    found = pytest.importorskip("yaml").safe_load(text)
    assert found["authors"] == [{"name": "The mpifed developers"}]
    assert all(
        paper["title"] and all(set(who) == {"family-names", "given-names"} for who in paper["authors"])
        for paper in found["references"]
    )


def test_the_archive_is_described_as_the_citation_is():
    """.zenodo.json, which an archive reads at a release, and CITATION.cff say the same of it."""
    cited = pytest.importorskip("yaml").safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    archive = json.loads((ROOT / ".zenodo.json").read_text("utf-8"))
    assert archive["title"] == cited["title"]
    assert archive["version"] == cited["version"] == mpifed.__version__
    assert archive["publication_date"] == str(cited["date-released"])
    assert archive["license"] == cited["license"]
    assert archive["creators"] == cited["authors"]
    assert f"{len(Algorithm.choices)} methods" in archive["description"]


def test_the_workflow_of_the_forge_runs_the_stages_of_ci():
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    (usual,) = re.findall(r"\|\| stages=\((.*)\)", text)
    workflow = pytest.importorskip("yaml").safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    jobs = workflow["jobs"].values()
    steps = [step.get("run", "") for job in jobs for step in job["steps"]]
    steps += [row["command"] for job in jobs for row in job.get("strategy", {}).get("matrix", {}).get("include", [])]
    named = {name for step in steps for name in re.findall(r"\.ci/run (\w+)", step)}
    # `tests` has the versions of Python and both kinds of MPI in a matrix, which on one machine are these two stages
    assert set(usual.split()) - {"newest", "openmpi"} <= named
    assert all(f"stage_{name}()" in text for name in named)
    bodies = dict(re.findall(r"^stage_(\w+)\(\) \{\n(.*?)^\}", text, re.M | re.S))
    parts = {name for name, body in bodies.items() if "$(turn " in body}
    for job in jobs:
        assert 0 < job["timeout-minutes"] <= 60
        (checkout,) = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")]
        if any(f".ci/run {name}" in str(job) for name in parts):  # a shallow clone has one commit: always the same part
            assert checkout["with"]["fetch-depth"] == 0
    assert workflow["permissions"] == {"contents": "read"}


LINKS = runpy.run_path(str(ROOT / "docs" / "links.py"))


def test_dead_links_and_anchors_of_pages_notebooks_and_the_error_page_are_found(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1> <a href="notebooks/run.html#end">x</a> <img src="lost.png">')
    (tmp_path / "notebooks" / "run.html").write_text(
        '<a name="end"></a><a href="../a.html#top">x</a><a href="../a.md">x</a><a href="../a.html#not">x</a>'
        '<a href="#end">x</a><a href="#gone">x</a>'
        '<a href="https://example.org/no.html">x</a><a href="mailto:a@b.c">x</a>'
    )
    (tmp_path / "404.html").write_text('<a href="/a.html">x</a><a href="/b.html">x</a>')
    assert LINKS["dead"](tmp_path) == [
        "404.html: /b.html",
        "a.html: lost.png",
        "notebooks/run.html: ../a.md",
        "notebooks/run.html: ../a.html#not",
        "notebooks/run.html: #gone",
    ]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_of_a_papers_tables_has_every_cell_and_claim_that_is_counted(paper):
    page = (STUDIES / f"tables-{paper}.md").read_text("utf-8")
    own = [
        one for name, one in BUILD["OUTCOMES"]["counted"]().items() if name.startswith(f"{paper}/") and one.rows.runs
    ]
    cells = sum(len(list(one.kinds())) for one in own)
    heads = len(re.findall(r"^\| method \|", page, re.M))
    assert len(re.findall(r"^\| [^-]", page, re.M)) - heads == cells > 0
    assert len(re.findall(r"^- \S+ “", page, re.M)) == sum(len(one.findings) for one in own) > 0
