"""The rules of the house, as far as a machine can check them: what CONTRIBUTING.md and docs/architecture.md promise."""

import re
import subprocess
import unittest
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP = (".cpp", ".h", ".cu", ".cuh", ".c")
# Where git does not say (an unpacked release): folders that are not ours.
NOT_OURS = {".git", "build", "node_modules", "out", "__pycache__", ".ruff_cache", ".cache"}
LONGEST_FILE = 700


@cache
def files() -> tuple[str, ...]:
    """Paths of all files of the project, relative to its root."""
    try:
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        paths = listed.stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        paths = []
    if not any(paths):
        paths = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
        paths = [path for path in paths if not NOT_OURS & set(Path(path).parts) and not path.startswith(".venv")]
    return tuple(path for path in paths if path and (ROOT / path).is_file())


@cache
def text(path: str) -> str:
    """What is in a file, "" if that is not text."""
    try:
        return (ROOT / path).read_bytes().decode()
    except UnicodeDecodeError:
        return ""


def in_folders(*folders: str, endings: tuple[str, ...] = CPP) -> list[str]:
    return [path for path in files() if path.split("/")[0] in folders and path.endswith(endings)]


def includes(path: str) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^">]+)[">]', text(path), re.M)


def places(paths, pattern: str, flags: int = 0) -> list[str]:
    """file:line of each match."""
    found = []
    for path in paths:
        for match in re.finditer(pattern, text(path), flags | re.M):
            found.append(f"{path}:{text(path).count(chr(10), 0, match.start()) + 1}: {match[0].strip()}")
    return found


class Includes(unittest.TestCase):
    def assert_not_included(self, folders, *forbidden):
        bad = [
            f"{path} includes {name}"
            for path in in_folders(*folders)
            for name in includes(path)
            if name.startswith(forbidden)
        ]
        self.assertEqual(bad, [])

    def test_offline_side_knows_no_torch_and_no_probe(self):
        torch = ("torch/", "ATen/", "c10/", "cuda", "cupti", "nvtx", "Python.h")
        self.assert_not_included(["trace", "analyzers", "reporters", "cli"], *torch, "probe/", "ampscope/", "executor/")

    def test_data_runs_one_way(self):
        self.assert_not_included(["trace"], "analyzers/", "reporters/", "cli/")
        self.assert_not_included(["probe", "executor"], "analyzers/", "reporters/", "cli/")
        self.assert_not_included(["analyzers"], "reporters/", "cli/")
        self.assert_not_included(["reporters"], "cli/")

    def test_executor_includes_nothing_of_ampscope(self):
        self.assert_not_included(["executor"], "trace/", "probe/", "analyzers/", "reporters/", "cli/", "ampscope/")

    def test_order_within_the_probe(self):
        for folder, forbidden in {
            "probe/stats/": ("probe/record/", "probe/observe/", "probe/attach/", "torch/", "ATen/", "c10/"),
            "probe/record/": ("probe/observe/", "probe/attach/", "torch/", "ATen/", "c10/"),
            "probe/observe/": ("probe/attach/",),
            "probe/attach/": ("probe/observe/", "probe/record/", "probe/stats/", "trace/", "torch/", "ATen/", "c10/"),
        }.items():
            bad = [
                f"{path} includes {name}"
                for path in in_folders("probe")
                for name in includes(path)
                if path.startswith(folder) and name.startswith(forbidden)
            ]
            self.assertEqual(bad, [])

    def test_statistics_of_the_cpu_know_no_cuda(self):
        bad = [
            path
            for path in in_folders("probe")
            if path.startswith("probe/stats/cpu/")
            for name in includes(path)
            if "cuda" in name
        ]
        self.assertEqual(bad, [])

    def test_own_headers_are_included_from_the_root(self):
        bad = [
            f"{path} includes {name}"
            for path in in_folders("trace", "analyzers", "reporters", "cli", "executor", "probe")
            for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text(path), re.M)
            if not (ROOT / name).is_file()
            and not (ROOT / "probe/api" / name).is_file()
            and not name.startswith("rules/")
        ]
        self.assertEqual(bad, [])

    def test_headers_are_guarded(self):
        headers = in_folders("trace", "analyzers", "reporters", "cli", "executor", "probe", endings=(".h", ".cuh"))
        self.assertEqual(
            [path for path in headers if not re.search(r"^#pragma once|^#ifndef \w+_H$", text(path), re.M)], []
        )


class Rules(unittest.TestCase):
    def rule_codes(self):
        sources = [path for path in files() if path.startswith("analyzers/rules/") and path.endswith(".cpp")]
        return {match[1]: path for path in sources for match in re.finditer(r'\.code\s*=\s*"(AMP\d{3})"', text(path))}

    def test_every_rule_has_its_page_and_every_page_its_rule(self):
        codes = self.rule_codes()
        self.assertNotEqual(codes, {})
        pages = {Path(path).stem for path in files() if re.fullmatch(r"docs/rules/AMP\d{3}\.md", path)}
        self.assertEqual(set(codes) - pages, set(), "rules without a page")
        self.assertEqual(pages - set(codes), set(), "pages without a rule")

    def test_one_file_a_rule(self):
        sources = [path for path in files() if path.startswith("analyzers/rules/") and path.endswith(".cpp")]
        self.assertEqual([path for path in sources if len(re.findall(r'\.code\s*=\s*"AMP', text(path))) > 1], [])


class Texts(unittest.TestCase):
    def test_no_package_registry_is_named(self):
        # npm writes where it took a package from into its lock file unless told not to, so these are looked at as well.
        hosts = "|".join(("pypi", "pythonhosted", "npmjs", "npmmirror", "debian", "ubuntu", "download.pytorch"))
        self.assertEqual(places(files(), rf"https?://[\w.-]*(?:{hosts})[\w.-]*\.(?:org|com|net)"), [])

    def test_no_path_of_one_machine(self):
        # Ada's and Bob's homes are examples.
        self.assertEqual(
            places(files(), r"(?<![\w.$}])/(?:work|root|farm|Users|home/(?!(?:a|ada|bob|user)\b))[/\w]\S*"), []
        )

    def test_no_marks_of_unfinished_work(self):
        marks = "|".join(("TO-DO", "FIX-ME", "X-XX", "HA-CK")).replace("-", "")  # so that this file has none
        sources = [path for path in files() if path.endswith((*CPP, ".py", ".ts", ".mjs", ".cmake", ".txt", ".md"))]
        self.assertEqual(places(sources, rf"\b(?:{marks})\b"), [])

    def test_no_file_is_very_long(self):
        sources = [path for path in files() if path.endswith((*CPP, ".py", ".ts", ".mjs"))]
        self.assertEqual([path for path in sources if text(path).count("\n") > LONGEST_FILE], [])

    def test_file_names(self):
        sources = in_folders("trace", "analyzers", "reporters", "cli", "executor", "probe", "tests", "benchmarks")
        names = [
            path for path in sources if not re.fullmatch(r"[a-z][a-z0-9_]*\.\w+|AMP\d{3}_\w+\.cpp", Path(path).name)
        ]
        self.assertEqual(names, [])

    def test_links_of_the_documentation_lead_somewhere(self):
        bad = []
        for path in files():
            if not path.endswith(".md"):
                continue
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text(path)):
                if not re.match(r"[a-z]+:", target) and not (ROOT / path).parent.joinpath(target).exists():
                    bad.append(f"{path} → {target}")
        self.assertEqual(bad, [])

    def test_commands_of_the_readme_are_there(self):
        for command in re.findall(r"^    (scripts/\w+)", text("README.md"), re.M):
            self.assertTrue((ROOT / command).stat().st_mode & 0o111, command)

    def test_version_has_its_section_in_the_changelog(self):
        version = re.search(r"project\(ampscope VERSION ([\d.]+)", text("CMakeLists.txt"))[1]
        self.assertRegex(text("CHANGELOG.md"), rf"(?m)^## {re.escape(version)}\b")


if __name__ == "__main__":
    unittest.main()
