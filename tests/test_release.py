"""`make release`: the version and the changelog in the tree, checksums that sha256sum takes, and refusals that change nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tools import release

CHANGES = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One thing.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tmuxctl").mkdir()
    (tmp_path / release.VERSION_FILE).write_text('"""What."""\n\n__version__ = "0.1.0"\n')
    (tmp_path / release.CHANGELOG).write_text(CHANGES)
    return tmp_path


def test_the_version_stands_in_the_package_and_what_changed_under_it(root: Path) -> None:
    release.write_version(root, "0.2.0", "2030-01-31")
    assert '__version__ = "0.2.0"' in (root / release.VERSION_FILE).read_text()
    assert (root / release.CHANGELOG).read_text() == (
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2030-01-31\n\n### Added\n\n- One thing.\n"
    )


def test_the_first_release_has_the_version_that_stands_there(root: Path) -> None:
    release.write_version(root, "0.1.0", "2030-01-31")
    assert "## [0.1.0] - 2030-01-31" in (root / release.CHANGELOG).read_text()


@pytest.mark.parametrize(
    ("version", "changes", "reason"),
    [
        ("0.0.9", CHANGES, "0.0.9 is no version behind 0.1.0"),
        ("next", CHANGES, "next is no version behind 0.1.0"),
        ("0.2.0", "## [Unreleased]\n\n## [0.1.0] - 2029-01-01\n\n- It.\n", "nothing stands under Unreleased"),
        ("0.2.0", "## [0.1.0]\n", "nothing stands under Unreleased"),
        ("0.1.0", CHANGES + "\n## [0.1.0] - 2029-01-01\n", "stands in CHANGELOG.md already"),
    ],
)
def test_what_is_no_release_is_refused_and_nothing_is_changed(
    root: Path, version: str, changes: str, reason: str
) -> None:
    (root / release.CHANGELOG).write_text(changes)
    before = (root / release.VERSION_FILE).read_text()
    with pytest.raises(release.Refused, match=reason):
        release.write_version(root, version, "2030-01-31")
    assert ((root / release.VERSION_FILE).read_text(), (root / release.CHANGELOG).read_text()) == (before, changes)


def test_sha256sum_checks_the_checksums(tmp_path: Path) -> None:
    if not shutil.which("sha256sum"):
        pytest.skip("sha256sum is not installed")
    (tmp_path / "one.whl").write_bytes(b"one")
    (tmp_path / "two.pyz").write_bytes(b"two")
    (tmp_path / "SHA256SUMS").write_text(release.checksums(tmp_path))
    words = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == "one.whl: OK\ntwo.pyz: OK\n"
