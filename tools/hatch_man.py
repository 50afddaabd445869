"""Puts the manual pages into a wheel, where an installation's `man` finds them; hatchling calls it when it builds one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "share/man/man1"


class ManPages(BuildHookInterface[Any]):
    """Makes the pages for one build, in a folder that is gone behind it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages and name them to the build; without click, which they are made with, there are none."""
        sys.path.insert(0, self.root)
        try:
            from tmuxctl.surfaces.cli.manual import man
        except ModuleNotFoundError as error:
            self.app.display_warning(f"no manual pages: {error}")
            return
        finally:
            sys.path.remove(self.root)
        self.folder = Path(tempfile.mkdtemp(prefix="tmuxctl-man-"))
        man.write(self.folder)
        build_data["shared_data"] |= {str(path): f"{PLACE}/{path.name}" for path in sorted(self.folder.iterdir())}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove them again."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)
