"""The wheel is complete: installed alone into a clean environment, it loads every script."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LOAD = """
import streamjobs
from streamjobs.protocol import scripts
print(streamjobs.__file__)
print(scripts.folder())
for name in scripts.names():
    assert scripts.load(name).text
    print(name)
"""


def run(*words: str | Path, **variables: str) -> str:
    """Run a command away from the checkout and return what it printed."""
    done = subprocess.run(
        list(map(str, words)),
        cwd=ROOT if "hatchling" in words else "/",
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    [built] = folder.glob("*.whl")
    return built


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"streamjobs/py.typed", "streamjobs/cli/main.py", "streamjobs/benchmarks/__init__.py"} <= set(names)
    scripts = {str(path.relative_to(ROOT)) for path in (ROOT / "lua").rglob("*") if path.is_file()}
    assert {f"streamjobs/{name}" for name in scripts} <= set(names)
    assert {name.split("/")[0] for name in names} == {
        "streamjobs",
        f"{wheel.name.rsplit('-', 3)[0]}.dist-info",
    }
    assert not [name for name in names if "__pycache__" in name]


def test_installed_wheel_loads_every_script(wheel: Path, tmp_path: Path) -> None:
    """The dependencies are lent by this environment; the package itself must be the installed one."""
    clean = tmp_path / "clean"
    run(sys.executable, "-m", "venv", "--without-pip", clean)
    python = clean / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        wheel,
    )
    lent = sysconfig.get_paths()["purelib"]

    package, folder, *names = run(python, "-c", LOAD, PYTHONPATH=lent).splitlines()

    assert Path(package).is_relative_to(clean)
    assert Path(folder).is_relative_to(clean)
    assert names == sorted(path.stem for path in (ROOT / "lua").glob("*.lua"))
    assert run(clean / "bin" / "streamjobs", "--version", PYTHONPATH=lent).strip()
    assert "enqueue" in run(clean / "bin" / "streamjobs", "bench", "list", PYTHONPATH=lent)
