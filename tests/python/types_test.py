"""The types of the package, by mypy: the package's own, those of the extension module, a user's."""

import os
import pathlib
import subprocess
import sys
import unittest

import isomer
from support import SOURCE, Case

USER = '''
import isomer
plan: isomer.Plan = isomer.optimize("zoo:mlp", isomer.Machine("dgx_h100"), time_limit=1)
outputs, gradients = plan.run(plan.random_inputs())
total: float = float(outputs["loss"].sum()) + sum(op.time_us or 0 for op in plan.operators)
reveal_type(plan.verify())
isomer.optimize("zoo:mlp", "dgx_h100", time_limit="x")
isomer.optimize("zoo:mlp", "dgx_h100", no_such_option=1)
'''


class TypesTest(Case):
    def mypy(self, *arguments):
        package = str(pathlib.Path(isomer.__file__).parents[1])
        return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True,
                              cwd=self.folder, check=False,
                              env={**os.environ, "MYPYPATH": package,
                                   "MYPY_CACHE_DIR": str(self.folder / "cache")})

    def test_the_package_is_typed(self):
        found = self.mypy("mypy", "--strict", "--ignore-missing-imports",
                          str(SOURCE / "python/isomer"))
        self.assertEqual(found.returncode, 0, found.stdout)

    def test_the_stub_is_the_modules(self):
        (self.folder / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\n")
        found = self.mypy("mypy.stubtest", "isomer._isomer", "--mypy-config-file=mypy.ini",
                          f"--allowlist={SOURCE / 'tests/python/stubtest_allowlist.txt'}",
                          "--ignore-unused-allowlist")
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)

    def test_a_users_program(self):
        (self.folder / "user.py").write_text(USER)
        found = self.mypy("mypy", "user.py")
        self.assertIn('Revealed type is "isomer.plan.Verification"', found.stdout)
        self.assertIn('user.py:7: error: Argument "time_limit"', found.stdout)
        self.assertIn('user.py:8: error: Unexpected keyword argument "no_such_option"', found.stdout)
        self.assertEqual(found.stdout.count("error:"), 2, found.stdout)


if __name__ == "__main__":
    unittest.main()
