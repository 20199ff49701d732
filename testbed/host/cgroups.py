"""The control groups that this process is in, of either version, and those above them.

Source: cgroups(7). `/proc/self/cgroup` has a line `0::/path` for version 2 and `4:cpu,cpuacct:/path` for controllers of
version 1. Inside a container the path may be that of the host, so where no folder bears it the mount itself is taken.
"""

from __future__ import annotations

from pathlib import Path

MOUNT = "sys/fs/cgroup"


def cgroup_files(root: Path, controller: str, name: str) -> list[Path]:
    """The files of this name in our own group and in all above it, the nearest first; none where there are no groups.

    Args:
        root: below which /proc and /sys lie.
        controller: such as `cpu`, for version 1.
        name: of the file.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            found += _upward(root / MOUNT, path, name)
        elif controller in controllers.split(","):
            for mount in (controllers, controller):
                found += _upward(root / MOUNT / mount, path, name)
    return list(dict.fromkeys(found))


def _upward(mount: Path, path: str, name: str) -> list[Path]:
    folder = mount / path.lstrip("/")
    if not folder.is_dir():
        folder = mount
    folders = [folder, *folder.parents]
    return [each / name for each in folders[: folders.index(mount) + 1] if (each / name).is_file()]
