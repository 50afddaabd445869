"""Puts a link where a folder is, again and again, when it is looked at: `swap.py TARGET PATH MILLISECONDS ...`.

As soon as something in the folder or beside it is opened it waits the next of the milliseconds, puts a link to TARGET in
the folder's place, and later the folder back. `.git` is made first, as what git takes for a repository; of another path it
waits until all is there: until there is a file `made`.
"""

import ctypes
import itertools
import os
import select
import sys
import time

OPENED = 0x20


def good(path):
    """A folder at the path, whatever is there."""
    if os.path.islink(path):
        os.unlink(path)
    if path != ".git":
        while not (os.path.isdir(path) and os.path.exists("made")):
            time.sleep(0.01)
        return
    for name in ("objects", "refs"):
        os.makedirs(f"{path}/{name}", exist_ok=True)
    for name, text in (("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n\tbare = false\n")):
        with open(f"{path}/{name}", "w") as file:
            file.write(text)


def main(target, path, delays):
    libc = ctypes.CDLL(None)
    for delay in itertools.cycle(delays):
        good(path)
        watch = libc.inotify_init()
        for watched in (path, f"{path}/HEAD", os.path.dirname(path) or "."):
            if os.path.exists(watched):
                libc.inotify_add_watch(watch, watched.encode(), OPENED)
        print("ready", flush=True)
        select.select([watch], [], [])
        time.sleep(float(delay) / 1000)
        os.rename(path, f"{path}.kept")
        os.symlink(target, path)
        os.close(watch)
        print("swapped", flush=True)
        time.sleep(0.5)
        os.unlink(path)
        os.rename(f"{path}.kept", path)


main(sys.argv[1], sys.argv[2], sys.argv[3:])
