# SPDX-License-Identifier: Apache-2.0
"""Caches of engines: the options cache_built_engines, reuse_cached_engines, engine_cache_dir, engine_cache_size and custom_engine_cache."""
import contextlib
import hashlib
import os
import tempfile

import sinter


class BaseEngineCache:
    """The base of scripts' caches. A subclass has save(hash, blob) and load(hash), which gives what was saved, or None."""

    def save(self, hash, blob, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no save(hash, blob)")

    def load(self, hash, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no load(hash)")


def own_folder():
    """sinter/engines below XDG_CACHE_HOME or ~/.cache, which others cannot write to."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sinter", "engines")


class DiskEngineCache(BaseEngineCache):
    """Engines in a folder, a file for each. The ones that were not used for the longest time go where they are more than engine_cache_size bytes."""

    def __init__(self, engine_cache_dir=None, engine_cache_size=5 << 30):
        self.folder, self.size = os.fspath(engine_cache_dir or own_folder()), engine_cache_size
        os.makedirs(self.folder, mode=0o700, exist_ok=True)

    def path(self, hash):
        return os.path.join(self.folder, hash + ".sinter")

    def save(self, hash, blob, *args, **kwargs):
        if len(blob) > self.size:
            return
        found = []
        for entry in os.scandir(self.folder):
            with contextlib.suppress(FileNotFoundError):        # another process removed it
                if entry.name.endswith(".sinter"):
                    found.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
        total = sum(size for _, size, _ in found) + len(blob)
        for _, size, path in sorted(found):
            if total > self.size:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
                total -= size
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(blob)
        os.replace(file.name, self.path(hash))

    def load(self, hash, *args, **kwargs):
        try:
            with open(self.path(hash), "rb") as file:
                os.utime(self.path(hash))
                return file.read()
        except FileNotFoundError:
            return None


def build(settings, model, **options):
    """sinter.build, or what the cache of the settings has. An engine is known by its model with the weights, its options and sinter's version."""
    if not settings.cache_built_engines and not settings.reuse_cached_engines:
        return sinter.build(model, **options)
    cache = settings.custom_engine_cache or DiskEngineCache(settings.engine_cache_dir, settings.engine_cache_size)
    key = hashlib.sha256(repr((sinter.__version__, sorted(options.items()))).encode() + model).hexdigest()
    found = cache.load(key) if settings.reuse_cached_engines else None
    if found is not None:
        try:
            sinter.load(found, no_device=True)
            return found
        except sinter.Error:                             # damaged, or of another build of sinter
            pass
    made = sinter.build(model, **options)
    if settings.cache_built_engines:
        cache.save(key, bytes(made))
    return made
