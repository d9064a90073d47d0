"""Threats T1, T2 and T5: nothing that is read can become code, here or on the server.

Here it is looked for in the sources; tests/security/test_bad_input.py tries it.
"""

import ast
import re

from tests.style.sources import files, shown, tree

PACKAGE = files(".py", "streamjobs")
LUA = files(".lua", "lua")

RUNS_CODE = {"eval", "exec", "__import__", "compile"}
COMPILES = {"streamjobs/demo/index.py", "streamjobs/demo/check.py"}
"""The demo's work is to parse this machine's own Python; it runs none of it."""
READS_CODE = {"pickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "jsonpickle", "runpy", "code", "codeop"}
IMPORTS_BY_NAME = {
    f"streamjobs/{one}.py" for one in ("__init__", "cli/apps", "cli/bench", "cli/commands", "worker/child")
}
"""The package's own names, the app that `-A` names, the benchmarks, the commands that there are, and the modules
in which a worker has found its handlers, as it tells its own processes."""


def test_threat_T1_nothing_runs_code() -> None:
    found = [
        f"{shown(path, node.lineno)} {node.func.id}"
        for path in PACKAGE
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RUNS_CODE
        if not (node.func.id == "compile" and shown(path) in COMPILES)
    ]
    assert not found, found


def test_threat_T1_nothing_reads_objects_that_run() -> None:
    found = []
    for path in PACKAGE:
        for node in ast.walk(tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
            found += [f"{shown(path)} imports {name}" for name in names if name.partition(".")[0] in READS_CODE]
    assert not found, found


def test_threat_T2_nothing_is_imported_by_a_name_that_was_read() -> None:
    found = [shown(path) for path in PACKAGE if "import_module(" in path.read_text("utf-8")]

    assert set(found) <= IMPORTS_BY_NAME


def test_threat_T5_scripts_are_files_and_nothing_else() -> None:
    for path in PACKAGE:
        text = path.read_text("utf-8")
        assert not re.search(r"""["']EVAL["']""", text), shown(path)
        if '"SCRIPT", "LOAD"' in text:
            assert 'pack("SCRIPT", "LOAD", scripts.load(request.script).text)' in text, shown(path)


def test_threat_T5_no_script_makes_code_or_names_a_command_by_data() -> None:
    for path in LUA:
        text = re.sub(r"--.*", "", path.read_text("utf-8"))
        assert not re.search(r"\b(load|loadstring|dofile|require|setfenv|getfenv|setmetatable)\s*\(", text), shown(path)
        named = re.findall(r"redis\.p?call\(\s*([^,)]+)", text)
        # `probe` goes through a list of its own.
        assert path.stem == "probe" or all(one.startswith("'") for one in named), (shown(path), named)
