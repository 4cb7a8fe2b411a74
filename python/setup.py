"""Builds the package isomer by CMake: `pip install ./python`, from a checkout of the whole tree.

With --no-build-isolation nothing but setuptools, wheel and CMake is needed, which distributions have.
The C++ is built in build/release if that is for this Python, else in a folder of its own, with
CMAKE_ARGS; CMAKE_BUILD_PARALLEL_LEVEL says how many compilers run at once. ISOMER_BUILD names a build
folder that has the module already.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PYTHON = pathlib.Path(__file__).resolve().parent
ROOT = PYTHON.parent
# What is read at run time, below isomer/data in a package.
DATA = ("rules/default.rules", "optimizer/machines/*.textproto")


class BuildByCMake(build_ext):
    """Builds the extension module, and puts it, and the data, beside the sources."""

    def build_extension(self, ext):
        if not (ROOT / "CMakeLists.txt").exists():
            raise SystemExit("error: the tree that python/ is a folder of is needed to build it")
        given = os.environ.get("ISOMER_BUILD")
        build = (ROOT / given).resolve() if given else self._built()
        module = build / "python/isomer" / f"_isomer{sysconfig.get_config_var('EXT_SUFFIX')}"
        if not module.exists():
            raise SystemExit(f"error: {build} has no {module.name} (of this Python): "
                             f"cmake --build {given or build} --target isomer_python")
        package = pathlib.Path(self.get_ext_fullpath(ext.name)).resolve().parent
        package.mkdir(parents=True, exist_ok=True)
        shutil.copy2(module, package)
        for pattern in DATA:
            for source in ROOT.glob(pattern):
                target = package / "data" / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def _built(self):
        """The folder in which the extension module was built: build/release if that is for this
        Python, else one for it."""
        cache = ROOT / "build/release/CMakeCache.txt"
        is_for_this = (cache.exists() and sysconfig.get_config_var("SOABI") in cache.read_text()
                       and "isomer_python" in self._targets(cache.parent))
        build = cache.parent if is_for_this else self._configured()
        if "isomer_python" not in self._targets(build):
            raise SystemExit("error: pybind11 or Python's headers are missing: apt-get install "
                             "pybind11-dev python3-dev (scripts/install_dependencies.sh)")
        parallel = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
        subprocess.run(["cmake", "--build", build, "--target", "isomer_python", "--parallel",
                        parallel], check=True)
        return build

    def _configured(self):
        # Of the tree's build folder: checks of sources read python/.
        build = ROOT / "build" / pathlib.Path(self.build_temp).name.replace("temp.", "python.")
        build.mkdir(parents=True, exist_ok=True)
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run(["cmake", "-S", ROOT, "-B", build, *generator,
                        "-DCMAKE_BUILD_TYPE=Release", "-DISOMER_PYTHON=ON",
                        f"-DPython3_EXECUTABLE={sys.executable}",
                        *shlex.split(os.environ.get("CMAKE_ARGS", ""))], check=True)
        return build

    @staticmethod
    def _targets(build):
        found = subprocess.run(["cmake", "--build", build, "--target", "help"],
                               capture_output=True, text=True, check=False)
        return found.stdout


setup(ext_modules=[Extension("isomer._isomer", sources=[])],
      cmdclass={"build_ext": BuildByCMake})
