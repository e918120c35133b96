"""The machine's influence on figures: the processor, and the build of Python."""

import os
import platform
import sysconfig
from pathlib import Path


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def described() -> str:
    return f"{os.cpu_count()} cores ({processor()}), {platform.system()} {platform.release()}"


def has_pgo() -> bool:
    """Return whether this Python was built with profile-guided optimization.

    Debian and Ubuntu run `make profile-opt` without configuring it; their builds are recognized by their own
    installation scheme.
    """
    is_configured = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return is_configured or "deb_system" in sysconfig.get_scheme_names()


def python_build() -> str:
    return f"{platform.python_version()} {'with' if has_pgo() else 'without'} profile-guided optimization"
