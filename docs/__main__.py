"""python -m docs: lays out the manual in build/manual and builds its site; the exit code is nonzero if this fails."""

from __future__ import annotations

import subprocess
import sys

from docs.layout import ROOT, lay_out


def main() -> int:
    folder = ROOT / "build" / "manual"
    lay_out(folder)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, check=False)
    if done.returncode == 0:
        print(f"the manual: {folder / 'site' / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
