"""Which part of a workspace lies where the kernel tells nothing of changes made elsewhere?"""

from __future__ import annotations

import pytest

from memory.mounts import Mount, deaf_mount, parse_mountinfo

LOCAL = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw
"""
NFS = "36 27 0:45 / /home/ann/notes rw,relatime shared:7 master:2 - nfs4 nas:/export rw,vers=4.2\n"


def found(root: str, mountinfo: str) -> Mount | None:
    return deaf_mount(root, parse_mountinfo(mountinfo))


def test_the_fields_of_a_line_whatever_its_optional_ones():
    """Fields as in proc_pid_mountinfo(5); the example is its own."""
    example = (
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 propagate_from:2 unbindable - ext3 /dev/root rw"
    )

    assert parse_mountinfo(example) == (Mount("/mnt2", "ext3"),)
    assert parse_mountinfo(LOCAL)[1] == Mount("/", "ext4")


@pytest.mark.parametrize("root", ["/", "/home/ann", "/home/ann/notes", "/home/ann/notes/wiki"])
def test_a_workspace_above_at_or_below_a_network_mount_is_deaf(root):
    assert found(root, LOCAL + NFS) == Mount("/home/ann/notes", "nfs4")


@pytest.mark.parametrize("root", ["/home/ann/notes2", "/home/ann/note", "/home/bob", "/dev/shm/x"])
def test_a_workspace_beside_a_network_mount_is_not(root):
    assert found(root, LOCAL + NFS) is None


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "fuse.rclone", "9p", "drvfs", "ceph", "vboxsf"],
)
def test_what_is_changed_by_other_machines(kind):
    assert found("/m/a", f"{LOCAL}40 27 0:50 / /m rw - {kind} source rw\n") == Mount("/m", kind)


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "overlay", "tmpfs", "fuseblk", "fuse.encfs"])
def test_what_is_changed_here_alone(kind):
    assert found("/m/a", f"{LOCAL}40 27 0:50 / /m rw - {kind} source rw\n") is None


def test_a_local_mount_inside_a_network_mount_is_local():
    inner = "41 36 254:1 / /home/ann/notes/fast rw - ext4 /dev/vdb rw\n"

    assert found("/home/ann/notes/fast/wiki", LOCAL + NFS + inner) is None
    assert found("/home/ann/notes/slow", LOCAL + NFS + inner) == Mount("/home/ann/notes", "nfs4")


def test_a_mount_over_another_one_hides_it():
    over = "42 36 254:1 / /home/ann/notes rw - ext4 /dev/vdb rw\n"

    assert found("/home/ann/notes/wiki", LOCAL + NFS + over) is None
    assert found("/home/ann", LOCAL + NFS + over) is None
    assert found("/home/ann/notes", LOCAL + over + NFS) == Mount("/home/ann/notes", "nfs4")


def test_a_bind_mount_is_of_the_kind_of_what_it_shows():
    """The fourth field is the folder that is shown; the type stays that of its file system."""
    bound = "43 27 0:45 /team/wiki /srv/wiki rw shared:7 - nfs4 nas:/export rw\n"

    assert found("/srv/wiki", LOCAL + bound) == Mount("/srv/wiki", "nfs4")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"/mnt/my\040notes", "/mnt/my notes"),
        (r"/mnt/a\011b", "/mnt/a\tb"),
        (r"/mnt/a\012b", "/mnt/a\nb"),
        (r"/mnt/a\134040b", r"/mnt/a\040b"),
        (r"/mnt/a\043b", "/mnt/a#b"),
        ("/mnt/caf\u00e9", "/mnt/caf\u00e9"),
        ("/mnt/caf\udce9", "/mnt/caf\udce9"),
    ],
)
def test_names_with_characters_that_are_escaped(written, meant):
    line = f"44 27 0:51 / {written} rw - cifs //nas/share rw\n"

    assert found(f"{meant}/wiki", LOCAL + line) == Mount(meant, "cifs")


@pytest.mark.parametrize("text", ["", "\n", "36 35\n", "36 35 98:0 / /m rw - \n", "no - dash\n"])
def test_lines_that_are_none_are_passed_over(text):
    assert parse_mountinfo(text) == ()
