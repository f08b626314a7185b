"""The house: which room may import which, what one room alone may do, and how large things may grow."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from tests.helpers import meters, words
from tests.helpers.meters import nodes

ROOT = Path(__file__).parent.parent / "mpifed"
FILES = sorted(ROOT.rglob("*.py"))
EVERY = FILES + sorted((ROOT.parent / "benchmarks").rglob("*.py"))  # the limits hold for the benchmarks too

ARROWS = {  # room -> the rooms right below it; what lies further down may be imported too
    "core": (),
    "theory": ("core",),
    "results": ("theory",),
    "report": ("results",),
    "data": ("core",),
    "kernels": ("data",),
    "problems": ("kernels",),
    "networks": ("problems",),
    "compressors": ("core",),
    "graphs": ("core",),
    "federation": ("problems", "compressors", "graphs"),
    "algorithms": ("federation", "theory"),
    "mpi": ("federation",),
    "features": ("algorithms",),
    "engine": ("features", "results"),
    "experiment": ("engine", "mpi", "results"),
    "sweeps": ("experiment", "results"),
    "checking": ("experiment", "results"),
    "statistics": ("experiment", "results"),
    "api": ("sweeps", "checking", "statistics", "report"),
    "cli": ("sweeps", "checking", "statistics", "report"),
    "mpifed": ("api", "cli"),
}

# Rooms whose classes a family loads by their names; nothing below imports them.
BY_NAME = {"engine", "features", "networks", "statistics"}


def room(name):
    """mpifed.kernels.blocks -> data; what lies in the root is the room ``mpifed``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ARROWS else "mpifed"


def below(name):
    """A room and all that it may import."""
    return {name}.union(*(below(lower) for lower in ARROWS[name]))


def module(path):
    """mpifed/kernels/blocks.py -> mpifed.kernels.blocks; mpifed/data/__init__.py -> mpifed.data."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module(path): path for path in EVERY}


@cache
def imports(path):
    """The modules that a file imports, those inside functions and under TYPE_CHECKING too."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            for alias in node.names:
                source = meters.home(node, alias.name)
                found.add(name if (name := f"{source}.{alias.name}") in MODULES else source)
    return found


@cache
def named(path):
    """The modules of mpifed that a file names in texts, as "module:Class": families and the public API import them."""
    texts = (node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    found = {text.partition(":")[0] for text in texts if text.startswith("mpifed.")}
    return found & MODULES.keys() - meters.DOORS.keys()  # sentences name the doors


def importers(package):
    """The rooms that import a package."""
    return {room(module(path)) for path in FILES if any(name.split(".")[0] == package for name in imports(path))}


@cache
def calls(path):
    """(name of the function called, call) of every call: print, h5py.File …"""
    return [(ast.unparse(node.func), node) for node in nodes(path) if isinstance(node, ast.Call)]


@cache
def functions(path):
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_every_module_that_is_imported_is_there_and_arrows_between_rooms_go_down_only():
    wanted = {name for path in FILES for name in imports(path) | named(path) if name.split(".")[0] == "mpifed"}
    assert wanted <= MODULES.keys()
    upward = {
        f"{module(path)} imports {name}"
        for path in FILES
        for name in imports(path) | named(path)
        if name in MODULES
        and room(name) not in below(room(module(path)))
        and not (name in named(path) - imports(path) and room(name) in BY_NAME)
    }
    assert not upward


COMMANDS = {"mpifed.experiment.optimum"}  # which no run passes


PLUG_IN_ROOMS = ("checking", "report", "statistics", "sweeps", "theory")
ENGINE_ROOMS = ("engine", "federation", "kernels", "mpi")
FROM_THE_ENGINE = {  # what plug-in rooms take from the engine beside public names; only falls
    "checking.algorithms": {"declares_work", "required_methods"},
    "checking.case": {"Host"},
    "checking.check": {"LAUNCHERS", "RANKS", "read_launcher"},
    "checking.trace": {
        *("FOR_THE_RECORD", "GradientCounter", "Host", "InProcess", "Reply"),
        *("Request", "SCORES", "ServerState", "is_charged", "wrap_methods"),
    },
    "sweeps.cost": {"required_methods"},
    "sweeps.rank_groups": {"Mailbox", "split_ranks"},
    "sweeps.runner": {"World"},
    "sweeps.runs": {"World"},
    "sweeps.search": {"option_to_tune"},
    "sweeps.workers": {"World", "read_launcher"},
}


def engine_names(path):
    """The names of engine rooms that a file imports and a user could not, neither from mpifed nor from its families."""
    families = (ROOT / "api" / "families.pyi").read_text("utf-8")
    public = words.public_names() | {*re.findall(r"import (\w+) as", families)}
    return {
        alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and room(node.module or "") in ENGINE_ROOMS
        for alias in node.names
        if alias.name not in public
    }


def test_plug_in_rooms_import_public_names_and_no_engine():
    for path in FILES:
        name = module(path).removeprefix("mpifed.")
        if name.split(".")[0] in PLUG_IN_ROOMS:
            assert engine_names(path) <= FROM_THE_ENGINE.get(name, set()), name


def test_what_every_run_passes_imports_no_feature():
    """But for the promises that it asks for; which features there are, listed.py says by their names."""
    for path in FILES:
        if (
            room(module(path)) in ("experiment", "mpi", "federation", "algorithms", "kernels")
            and module(path) not in COMMANDS
        ):
            found = {name for name in imports(path) if re.match(r"mpifed\.features\.\w+\.", name)}
            assert {name.split(".")[2] for name in found} <= {"promises"}, path


READ = {
    f"mpifed.results.{name}" for name in ("result", "columns", "over_clients", "coefficients", "best")
}  # without the writer


def test_reports_need_results_to_read_and_no_part_of_a_run_and_load_what_draws_only_to_draw():
    """They could be a distribution of their own."""
    for path in (ROOT / "report").rglob("*.py"):
        others = {name for name in imports(path) if name in MODULES and room(name) not in ("report", "core", "theory")}
        assert others <= READ, path
        loaded = [node for node in meters.tree(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not [
            node for node in loaded if re.match(r"(from|import) (matplotlib|plotly|pandas|PIL)\b", ast.unparse(node))
        ], path


def test_no_module_imports_itself_in_a_circle():
    TopologicalSorter({name: imports(path) & MODULES.keys() for name, path in MODULES.items()}).prepare()


def test_the_root_holds_the_public_names_and_the_entry_point_alone():
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py", "extend.py"}
    assert {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"} == ARROWS.keys() - {
        "mpifed"
    }


def test_only_the_room_mpi_imports_mpi4py_and_only_readers_and_the_results_h5py_which_the_results_alone_write():
    assert importers("mpi4py") == {"mpi"}
    assert importers("h5py") == {"core", "data", "results"}
    for path in FILES:
        for name, call in calls(path):
            if name.endswith("h5py.File") and room(module(path)) != "results":
                mode = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
                assert [ast.unparse(m) for m in mode] == ["'r'"], f"{path}:{call.lineno} opens an HDF5 file for writing"


def test_only_the_command_line_prints():
    printing = {module(path) for path in FILES for name, _ in calls(path) if name in ("print", "sys.stdout.write")}
    assert {room(name) for name in printing} == {"cli"}


def test_random_numbers_come_from_streams():
    """Neither numpy's global state nor a generator seeded by the clock; core.streams alone makes generators."""
    for path in FILES:
        used = {ast.unparse(node) for node in nodes(path) if isinstance(node, ast.Attribute)}
        allowed = {"np.random.Generator"}
        if module(path) == "mpifed.core.streams":
            seeds = "np.random.bit_generator"
            allowed |= {"np.random.Philox", seeds, f"{seeds}.ISeedSequence"}
        assert {name for name in used if name.startswith(("np.random.", "numpy.random."))} <= allowed, path
        assert not {name for name in imports(path) if name.startswith(("random", "secrets", "numpy.random"))}, path


def test_an_algorithm_sets_nothing_on_itself():
    for path in (ROOT / "algorithms").rglob("*.py"):
        for node in nodes(path):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            assert not any(isinstance(t, ast.Attribute) for t in targets), f"{path}:{node.lineno} sets an attribute"


def test_files_and_functions_can_be_read_in_one_sitting():
    assert {path.name: n for path in EVERY if (n := meters.lines(path)) > 400} == {}
    long = {f"{path.name}:{f.name}" for path in EVERY for f in functions(path) if f.end_lineno - f.lineno + 1 > 40}
    assert not long


def unrelated(node):
    """To how many names an assignment gives a value of its own, where these are several; otherwise 0."""
    many = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
    return len(node.value.elts) if many else 0


def test_one_thought_stands_on_a_line():
    """No condition in a condition, no name given inside an argument, no three values given at once, and few pairs."""
    pairs = 0
    for path in EVERY:
        counts = ROOT in path.parents
        naming = any(isinstance(node, ast.NamedExpr) for node in nodes(path))
        for node in nodes(path):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.IfExp):
                inner = sum(isinstance(part, ast.IfExp) for part in ast.walk(node)) - 1
                assert not inner, f"{where} has a condition in a condition"
            if naming and isinstance(node, ast.Call):
                words = [part for one in (*node.args, *node.keywords) for part in ast.walk(one)]
                assert not any(isinstance(part, ast.NamedExpr) for part in words), f"{where} names a value in a call"
            assert unrelated(node) < 3, f"{where} gives three values at once"
            pairs += counts and unrelated(node) == 2
    assert pairs < 150


def test_functions_take_at_most_six_parameters():
    """self and cls left out."""
    many = {
        f"{path.relative_to(ROOT.parent)}:{f.name} {n}"
        for path in EVERY
        for f in functions(path)
        if (n := sum(a.arg not in ("self", "cls") for a in [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs])) > 6
    }
    assert not many


# What ties the house together, with the bound that each number keeps; a change that lowers one lowers its bound.
BOUNDS = {
    "imports of the widest module": 20,
    "imports of experiment/prepare.py": 15,
    "classes derived from a seam": 3,
    "proxies": 0,
    "members of the house typed Any": 0,
    "isinstance": 218,  # points of f.point stand where arrays do, and three places must tell them apart
    "lists and texts times a condition": 0,
    "lines of mpifed": 56_870,
    "lines of tests": 52_670,
    "lines of benchmarks": 11_350,
}


def test_the_house_is_no_wider_than_its_bounds():
    widths = meters.house_widths()
    assert widths.keys() == BOUNDS.keys()
    assert {meter: width for meter, width in widths.items() if width > BOUNDS[meter]} == {}


# What a newcomer has to learn, with the bound that each number keeps, and where it shall be.
WORDS = {
    "homonyms": 0,  # 5
    "names in -ed": 44,  # 60
    "odd docstrings": 0,  # 30
    "private names of methods": 0,  # 0
    "private names of features": 129,  # 0
    "private names of networks": 14,  # 0
    "files with private names": 48,  # 0
    "members of a plug-in": 8,  # 8
    "slots of hosts and servers": 7,  # 5
    "refusing lines": 4_235,  # 2,200
    "names to know in fedgia.py": 35,  # 35
    "modules": 433,  # 420
    "modules with one importer": 68,  # 60
    "modules below 40 lines": 15,  # 10
}


def test_the_language_of_the_house_asks_no_more_of_a_newcomer_than_its_bounds():
    counts = {name: len(meter()) for name, meter in words.METERS.items()}
    assert counts.keys() == WORDS.keys()
    assert {name: n for name, n in counts.items() if n > WORDS[name]} == {}
