"""Which file systems does the kernel tell nothing about when others change them?

Events come from this machine's kernel. What another machine, the host of a virtual machine or the
other side of a FUSE server changes, it never sees; such folders must be polled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

NETWORK_TYPES = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "coda",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "gfs2",
        "ocfs2",
        "9p",
        "virtiofs",
        "drvfs",
        "vboxsf",
        "prl_fs",
        "vmhgfs",
        "davfs",
        "sshfs",
        "rclone",
        "s3fs",
        "goofys",
        "gcsfuse",
        "blobfuse",
        "blobfuse2",
        "juicefs",
        "curlftpfs",
        "gvfsd-fuse",
        "vmhgfs-fuse",
    }
)
"""Types as /proc/self/mountinfo names them, without the ``fuse.`` in front of some."""
_NUM_FIELDS_BEFORE_OPTIONAL = 6
_MOUNT_POINT = 4
_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One line of /proc/self/mountinfo, as far as it matters here."""

    point: str
    """Absolute path."""
    kind: str
    """Type of the file system."""


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Returns the mounts of a mountinfo text in its order; see proc_pid_mountinfo(5).

    Lines of another form are passed over.
    """
    mounts = []
    for line in text.split("\n"):
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.partition(" ")[0]
        if dash and kind and len(fields) >= _NUM_FIELDS_BEFORE_OPTIONAL:
            mounts.append(Mount(_unescaped(fields[_MOUNT_POINT]), kind))
    return tuple(mounts)


def deaf_mount(root: str, mounts: Iterable[Mount]) -> Mount | None:
    """Returns a network mount that a folder lies on or that lies below it; None if there is none.

    Args:
        root: Absolute path without symbolic links.
        mounts: In the order in which they were mounted: the later one at a place hides the earlier.
    """
    visible = {mount.point: mount for mount in mounts}
    own = max((point for point in visible if _contains(point, root)), key=len, default=None)
    relevant = [point for point in visible if point == own or _contains(root, point)]
    return next((visible[point] for point in sorted(relevant) if _is_deaf(visible[point])), None)


def _is_deaf(mount: Mount) -> bool:
    return mount.kind.removeprefix("fuse.") in NETWORK_TYPES


def _contains(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _unescaped(field: str) -> str:
    """Returns a field with the octal escapes of the kernel, such as that of a space, resolved."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), field)
